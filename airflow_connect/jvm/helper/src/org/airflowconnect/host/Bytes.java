package org.airflowconnect.host;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Bytes that grow at their end; numbers are little endian, as Arrow has them. */
final class Bytes {
    private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final int FIRST_CAPACITY = 1024;
    private static final int MOST = Integer.MAX_VALUE - 16;

    static final Bytes NONE = new Bytes(new byte[0]);

    private byte[] array;
    private int size;

    Bytes() {
        this(new byte[FIRST_CAPACITY]);
    }

    private Bytes(byte[] array) {
        this.array = array;
    }

    /** The bytes, followed by unused ones. */
    byte[] array() {
        return array;
    }

    int size() {
        return size;
    }

    void addInt(int value) {
        INTS.set(room(Integer.BYTES), size, value);
        size += Integer.BYTES;
    }

    void addLong(long value) {
        LONGS.set(room(Long.BYTES), size, value);
        size += Long.BYTES;
    }

    void add(byte[] value) {
        System.arraycopy(value, 0, room(value.length), size, value.length);
        size += value.length;
    }

    /** Sets or clears the bit after the last one; {@code index} counts them from 0. */
    void addBit(int index, boolean isSet) {
        if (index % Byte.SIZE == 0) {
            room(1)[size++] = 0;
        }
        if (isSet) {
            array[size - 1] |= (byte) (1 << index % Byte.SIZE);
        }
    }

    /** Number {@code index} of an array of int32 that starts at a position. */
    static int intAt(byte[] bytes, int start, int index) {
        return (int) INTS.get(bytes, start + index * Integer.BYTES);
    }

    static long longAt(byte[] bytes, int start, int index) {
        return (long) LONGS.get(bytes, start + index * Long.BYTES);
    }

    private byte[] room(int needed) {
        long least = (long) size + needed;
        if (least > MOST) {
            throw new FrameTooLargeException(least);
        }
        if (least > array.length) {
            array = Arrays.copyOf(array, (int) Math.min(MOST, Math.max(least, 2L * array.length)));
        }
        return array;
    }
}
