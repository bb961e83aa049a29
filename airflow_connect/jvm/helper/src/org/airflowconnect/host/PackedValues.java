package org.airflowconnect.host;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Time;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.errors.DataException;

/**
 * Connect's values as MessagePack. A value with a schema has only what the schema does not say: a struct is an array,
 * a map is an array of keys and values in turn, a decimal is its unscaled bytes, dates and times are their integers.
 * A null in a field is kept as it is, also if the field has a default. Without a schema, values tell what they are.
 * {@code airflow_connect/jvm/data/values.py} is the other side.
 */
final class PackedValues {
    static final int DATE = 1; // int64 milliseconds
    static final int DECIMAL = 2; // int32 scale, then the unscaled value
    private static final int MOST_LEVELS = 200;

    private PackedValues() {}

    /** @throws DataException the value does not fit the schema */
    static void write(PackWriter out, Schema schema, Object value) {
        if (value == null) {
            if (!schema.isOptional() && schema.defaultValue() == null) {
                throw new DataException("The schema " + describe(schema) + " is not optional, and the value is null.");
            }
            out.nil();
            return;
        }
        try {
            writePresent(out, schema, value);
        } catch (ClassCastException mismatch) {
            throw new DataException(
                    "The schema is " + describe(schema) + ", and the value is of " + value.getClass() + ".", mismatch);
        }
    }

    private static void writePresent(PackWriter out, Schema schema, Object value) {
        String name = schema.name();
        switch (schema.type()) {
            case INT8 -> out.integer((Byte) value);
            case INT16 -> out.integer((Short) value);
            case INT32 -> out.integer(writtenInt(schema, name, value));
            case INT64 -> out.integer(Timestamp.LOGICAL_NAME.equals(name) ? Timestamp.fromLogical(schema, (Date) value) : (Long) value);
            case FLOAT32 -> out.float32((Float) value);
            case FLOAT64 -> out.float64((Double) value);
            case BOOLEAN -> out.bool((Boolean) value);
            case STRING -> out.text((String) value);
            case BYTES -> out.binary(
                    Decimal.LOGICAL_NAME.equals(name) ? Decimal.fromLogical(schema, (BigDecimal) value) : bytes(value));
            case ARRAY -> {
                Collection<?> elements = (Collection<?>) value;
                out.array(elements.size());
                elements.forEach(element -> write(out, schema.valueSchema(), element));
            }
            case MAP -> {
                Map<?, ?> entries = (Map<?, ?>) value;
                MapKeys.requireDistinctInPython(entries);
                out.array(entries.size() * 2);
                entries.forEach((key, each) -> {
                    write(out, schema.keySchema(), key);
                    write(out, schema.valueSchema(), each);
                });
            }
            case STRUCT -> writeStruct(out, schema, (Struct) value);
        }
    }

    private static void writeStruct(PackWriter out, Schema schema, Struct struct) {
        if (struct.schema() != schema && !struct.schema().equals(schema)) {
            throw new DataException("Mismatching schema: the struct has another one than " + describe(schema) + ".");
        }
        List<Field> fields = schema.fields();
        out.array(fields.size());
        for (Field field : fields) {
            try {
                write(out, field.schema(), struct.getWithoutDefault(field.name()));
            } catch (DataException invalid) {
                throw new DataException("Field " + field.name() + ": " + invalid.getMessage(), invalid);
            }
        }
    }

    private static int writtenInt(Schema schema, String name, Object value) {
        if (org.apache.kafka.connect.data.Date.LOGICAL_NAME.equals(name)) {
            return org.apache.kafka.connect.data.Date.fromLogical(schema, (Date) value);
        }
        return Time.LOGICAL_NAME.equals(name) ? Time.fromLogical(schema, (Date) value) : (Integer) value;
    }

    private static byte[] bytes(Object value) {
        if (value instanceof byte[] array) {
            return array;
        }
        ByteBuffer buffer = ((ByteBuffer) value).duplicate();
        byte[] copy = new byte[buffer.remaining()];
        buffer.get(copy);
        return copy;
    }

    /** @throws DataException the value does not fit the schema */
    static Object read(PackReader in, Schema schema) {
        if (in.nil()) {
            if (!schema.isOptional() && schema.defaultValue() == null) {
                throw new DataException("The schema " + describe(schema) + " is not optional, and the value is null.");
            }
            return null;
        }
        String name = schema.name();
        return switch (schema.type()) {
            case INT8 -> (byte) in.integer();
            case INT16 -> (short) in.integer();
            case INT32 -> readInt(schema, name, (int) in.integer());
            case INT64 -> {
                long number = in.integer();
                yield Timestamp.LOGICAL_NAME.equals(name) ? (Object) Timestamp.toLogical(schema, number) : (Object) number;
            }
            case FLOAT32 -> (float) in.float64();
            case FLOAT64 -> in.float64();
            case BOOLEAN -> in.bool();
            case STRING -> in.text();
            case BYTES -> Decimal.LOGICAL_NAME.equals(name) ? Decimal.toLogical(schema, in.binary()) : in.binary();
            case ARRAY -> {
                int size = in.array();
                List<Object> elements = new ArrayList<>(size);
                for (int i = 0; i < size; i++) {
                    elements.add(read(in, schema.valueSchema()));
                }
                yield elements;
            }
            case MAP -> {
                int size = in.array() / 2;
                Map<Object, Object> entries = new LinkedHashMap<>();
                for (int i = 0; i < size; i++) {
                    Object key = read(in, schema.keySchema());
                    MapKeys.put(entries, key, read(in, schema.valueSchema()));
                }
                yield entries;
            }
            case STRUCT -> readStruct(in, schema);
        };
    }

    private static Struct readStruct(PackReader in, Schema schema) {
        Struct struct = new Struct(schema);
        in.array();
        for (Field field : schema.fields()) {
            Object value = read(in, field.schema());
            if (value != null) { // Otherwise it stays unset, which a field with a default may be.
                struct.put(field, value);
            }
        }
        return struct;
    }

    private static Object readInt(Schema schema, String name, int number) {
        if (org.apache.kafka.connect.data.Date.LOGICAL_NAME.equals(name)) {
            return org.apache.kafka.connect.data.Date.toLogical(schema, number);
        }
        return Time.LOGICAL_NAME.equals(name) ? (Object) Time.toLogical(schema, number) : (Object) number;
    }

    /** @throws DataException a class that has no place without a schema */
    static void writeSchemaless(PackWriter out, Object value, int level) {
        if (level > MOST_LEVELS) {
            throw new DataException("The value has more than " + MOST_LEVELS + " levels, or contains itself.");
        }
        if (value == null) {
            out.nil();
        } else if (value instanceof String text) {
            out.text(text);
        } else if (value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte) {
            out.integer(((Number) value).longValue());
        } else if (value instanceof Double number) {
            out.float64(number);
        } else if (value instanceof Float number) {
            out.float64(Double.parseDouble(number.toString())); // The double that JSON writes as it writes the float.
        } else if (value instanceof Boolean bool) {
            out.bool(bool);
        } else if (value instanceof byte[] || value instanceof ByteBuffer) {
            out.binary(bytes(value));
        } else if (value instanceof Map<?, ?> map) {
            MapKeys.requireDistinctInPython(map);
            out.map(map.size());
            map.forEach((key, each) -> {
                writeSchemaless(out, key, level + 1);
                writeSchemaless(out, each, level + 1);
            });
        } else if (value instanceof Collection<?> list) {
            out.array(list.size());
            list.forEach(each -> writeSchemaless(out, each, level + 1));
        } else if (value instanceof Date date) {
            out.extension(DATE, ByteBuffer.allocate(Long.BYTES).putLong(date.getTime()).array());
        } else if (value instanceof BigDecimal number) {
            byte[] unscaled = number.unscaledValue().toByteArray();
            out.extension(DECIMAL, ByteBuffer.allocate(Integer.BYTES + unscaled.length).putInt(number.scale()).put(unscaled).array());
        } else {
            throw new DataException("A value without a schema cannot be of " + value.getClass() + ".");
        }
    }

    static Object readSchemaless(PackReader in) {
        return switch (in.peek()) {
            case NIL -> {
                in.nil();
                yield null;
            }
            case BOOLEAN -> in.bool();
            case INTEGER -> in.integer();
            case FLOAT32, FLOAT64 -> in.float64();
            case TEXT -> in.text();
            case BINARY -> in.binary();
            case ARRAY -> {
                int size = in.array();
                List<Object> elements = new ArrayList<>(size);
                for (int i = 0; i < size; i++) {
                    elements.add(readSchemaless(in));
                }
                yield elements;
            }
            case MAP -> {
                int size = in.map();
                Map<Object, Object> entries = new LinkedHashMap<>();
                for (int i = 0; i < size; i++) {
                    Object key = readSchemaless(in);
                    MapKeys.put(entries, key, readSchemaless(in));
                }
                yield entries;
            }
            case EXTENSION -> readExtension(in.extension());
        };
    }

    private static Object readExtension(PackReader.Extension extension) {
        ByteBuffer bytes = ByteBuffer.wrap(extension.bytes());
        if (extension.type() == DATE) {
            return new Date(bytes.getLong());
        }
        if (extension.type() != DECIMAL) {
            throw new IllegalArgumentException("There is no extension " + extension.type() + ".");
        }
        int scale = bytes.getInt();
        byte[] unscaled = new byte[bytes.remaining()];
        bytes.get(unscaled);
        return new BigDecimal(new BigInteger(unscaled), scale);
    }

    private static String describe(Schema schema) {
        return schema.name() == null ? schema.type().toString() : schema.type() + " " + schema.name();
    }
}
