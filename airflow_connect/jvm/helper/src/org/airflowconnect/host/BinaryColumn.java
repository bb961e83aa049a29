package org.airflowconnect.host;

/** A column of byte strings as Arrow lays it out: validity bits, offsets, data. */
final class BinaryColumn {
    private final Bytes validity = new Bytes();
    private final Bytes offsets = new Bytes();
    private final Bytes data = new Bytes();
    private int rows;
    private int nulls;

    BinaryColumn() {
        offsets.addInt(0);
    }

    void add(byte[] value) {
        validity.addBit(rows++, value != null);
        if (value == null) {
            nulls++;
        } else {
            data.add(value);
        }
        offsets.addInt(data.size());
    }

    int rows() {
        return rows;
    }

    int dataBytes() {
        return data.size();
    }

    boolean isAllNull() {
        return nulls == rows;
    }

    /** Empty if no value is null. */
    Bytes validity() {
        return nulls == 0 ? Bytes.NONE : validity;
    }

    Bytes offsets() {
        return offsets;
    }

    Bytes data() {
        return data;
    }
}
