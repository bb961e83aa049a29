package org.airflowconnect.host;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** Reads MessagePack, all that Python's side may write. What does not fit is a defect of one of the two sides. */
final class PackReader {
    /** What the next value is. */
    enum Kind { NIL, BOOLEAN, INTEGER, FLOAT32, FLOAT64, TEXT, BINARY, ARRAY, MAP, EXTENSION }

    private final ByteBuffer in;

    PackReader(byte[] bytes) {
        in = ByteBuffer.wrap(bytes); // Big endian, as MessagePack is.
    }

    boolean hasMore() {
        return in.hasRemaining();
    }

    Kind peek() {
        int code = in.get(in.position()) & 0xff;
        if (code < 0x80 || code >= 0xe0) {
            return Kind.INTEGER;
        }
        if (code < 0x90) {
            return Kind.MAP;
        }
        if (code < 0xa0) {
            return Kind.ARRAY;
        }
        if (code < 0xc0) {
            return Kind.TEXT;
        }
        return switch (code) {
            case 0xc0 -> Kind.NIL;
            case 0xc2, 0xc3 -> Kind.BOOLEAN;
            case 0xc4, 0xc5, 0xc6 -> Kind.BINARY;
            case 0xc7, 0xc8, 0xc9, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8 -> Kind.EXTENSION;
            case 0xca -> Kind.FLOAT32;
            case 0xcb -> Kind.FLOAT64;
            case 0xd9, 0xda, 0xdb -> Kind.TEXT;
            case 0xdc, 0xdd -> Kind.ARRAY;
            case 0xde, 0xdf -> Kind.MAP;
            case 0xc1 -> throw unexpected(code);
            default -> Kind.INTEGER;
        };
    }

    /** Skips a nil; false: there is another value. */
    boolean nil() {
        if (peek() != Kind.NIL) {
            return false;
        }
        in.get();
        return true;
    }

    boolean bool() {
        int code = code();
        if (code != 0xc2 && code != 0xc3) {
            throw unexpected(code);
        }
        return code == 0xc3;
    }

    long integer() {
        int code = code();
        if (code < 0x80 || code >= 0xe0) {
            return (byte) code;
        }
        return switch (code) {
            case 0xcc -> in.get() & 0xff;
            case 0xcd -> in.getShort() & 0xffff;
            case 0xce -> in.getInt() & 0xffffffffL;
            case 0xd0 -> in.get();
            case 0xd1 -> in.getShort();
            case 0xd2 -> in.getInt();
            case 0xd3 -> in.getLong();
            case 0xcf -> in.getLong(); // Python refuses what a long cannot hold.
            default -> throw unexpected(code);
        };
    }

    double float64() {
        int code = code();
        return switch (code) {
            case 0xca -> in.getFloat();
            case 0xcb -> in.getDouble();
            default -> throw unexpected(code);
        };
    }

    String text() {
        int code = code();
        int size = code >= 0xa0 && code < 0xc0 ? code & 0x1f : size(code, 0xd9);
        return new String(bytes(size), StandardCharsets.UTF_8);
    }

    byte[] binary() {
        return bytes(size(code(), 0xc4));
    }

    /** How many values follow. */
    int array() {
        int code = code();
        return code >= 0x90 && code < 0xa0 ? code & 0x0f : size(code, 0xdb);
    }

    /** How many pairs of values follow. */
    int map() {
        int code = code();
        return code >= 0x80 && code < 0x90 ? code & 0x0f : size(code, 0xdd);
    }

    /** The type of an extension; its bytes are next. */
    record Extension(int type, byte[] bytes) {}

    Extension extension() {
        int code = code();
        int size = code >= 0xd4 && code <= 0xd8 ? 1 << (code - 0xd4) : size(code, 0xc7);
        return new Extension(in.get(), bytes(size));
    }

    /** A size of one, two or four bytes; the codes of the three follow each other. */
    private int size(int code, int one) {
        return switch (code - one) {
            case 0 -> in.get() & 0xff;
            case 1 -> in.getShort() & 0xffff;
            case 2 -> in.getInt();
            default -> throw unexpected(code);
        };
    }

    private byte[] bytes(int size) {
        byte[] bytes = new byte[size];
        in.get(bytes);
        return bytes;
    }

    private int code() {
        return in.get() & 0xff;
    }

    private IllegalArgumentException unexpected(int code) {
        return new IllegalArgumentException(
                "Unexpected code 0x" + Integer.toHexString(code) + " before byte " + in.position() + ".");
    }
}
