package org.airflowconnect.host;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.connect.errors.DataException;

/** Writes MessagePack (github.com/msgpack/msgpack, spec.md), as much of it as Connect's values need. */
final class PackWriter {
    private static final int MOST_IN_A_BYTE = 0xff;
    private static final int MOST_IN_TWO_BYTES = 0xffff;

    private final ByteArrayOutputStream out = new ByteArrayOutputStream(256);

    /** What was written since the last call. */
    byte[] take() {
        byte[] taken = out.toByteArray();
        out.reset();
        return taken;
    }

    void nil() {
        out.write(0xc0);
    }

    void bool(boolean value) {
        out.write(value ? 0xc3 : 0xc2);
    }

    void integer(long value) {
        if (value >= -32 && value < 128) {
            out.write((int) value);
        } else if (value == (short) value) {
            out.write(0xd1);
            number(value, Short.BYTES);
        } else if (value == (int) value) {
            out.write(0xd2);
            number(value, Integer.BYTES);
        } else {
            out.write(0xd3);
            number(value, Long.BYTES);
        }
    }

    void float32(float value) {
        out.write(0xca);
        number(Float.floatToRawIntBits(value), Integer.BYTES);
    }

    void float64(double value) {
        out.write(0xcb);
        number(Double.doubleToRawLongBits(value), Long.BYTES);
    }

    /** @throws DataException a surrogate without its partner: it has no bytes in UTF-8 */
    void text(String value) {
        requirePairs(value);
        byte[] encoded = value.getBytes(StandardCharsets.UTF_8);
        if (encoded.length < 32) {
            out.write(0xa0 | encoded.length);
        } else {
            sized(encoded.length, 0xd9, 0xda, 0xdb);
        }
        out.write(encoded, 0, encoded.length);
    }

    void binary(byte[] value) {
        sized(value.length, 0xc4, 0xc5, 0xc6);
        out.write(value, 0, value.length);
    }

    /** Starts an array; that many values follow. */
    void array(int size) {
        if (size < 16) {
            out.write(0x90 | size);
        } else {
            wide(size, 0xdc, 0xdd);
        }
    }

    /** Starts a map; that many pairs of values follow. */
    void map(int size) {
        if (size < 16) {
            out.write(0x80 | size);
        } else {
            wide(size, 0xde, 0xdf);
        }
    }

    void extension(int type, byte[] value) {
        sized(value.length, 0xc7, 0xc8, 0xc9);
        out.write(type);
        out.write(value, 0, value.length);
    }

    /** @throws DataException a surrogate without its partner: it has no bytes in UTF-8 */
    static void requirePairs(String value) {
        for (int i = 0; i < value.length(); i++) {
            char unit = value.charAt(i);
            if (!Character.isSurrogate(unit)) {
                continue;
            }
            if (Character.isLowSurrogate(unit) || ++i == value.length() || !Character.isLowSurrogate(value.charAt(i))) {
                throw new DataException("The text has half of a character (a surrogate without its partner).");
            }
        }
    }

    private void sized(int size, int one, int two, int four) {
        if (size <= MOST_IN_A_BYTE) {
            out.write(one);
            out.write(size);
        } else {
            wide(size, two, four);
        }
    }

    private void wide(int size, int two, int four) {
        boolean fits = size <= MOST_IN_TWO_BYTES;
        out.write(fits ? two : four);
        number(size, fits ? Short.BYTES : Integer.BYTES);
    }

    /** Big endian. */
    private void number(long value, int bytes) {
        for (int shift = (bytes - 1) * Byte.SIZE; shift >= 0; shift -= Byte.SIZE) {
            out.write((int) (value >> shift));
        }
    }
}
