package org.airflowconnect.host;

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.errors.DataException;

/**
 * Keys of a map that are two in one language and one in the other: Java tells an Integer 1 from a Long 1, from a Double
 * 1.0 and from true, and 0.0 from -0.0; Python does not. One of their entries would be lost without a word.
 */
final class MapKeys {
    private static final int MOST_CHARS = 100;

    private MapKeys() {}

    /** @throws DataException two keys are one in Python */
    static void requireDistinctInPython(Map<?, ?> map) {
        if (map.size() < 2 || map.keySet().stream().allMatch(String.class::isInstance)) {
            return;
        }
        Map<Object, Object> seen = new HashMap<>();
        for (Object key : map.keySet()) {
            Object form = inPython(key);
            if (seen.containsKey(form)) {
                throw same(seen.get(form), key, "Python");
            }
            seen.put(form, key);
        }
    }

    /** @throws DataException the map has this key */
    static void put(Map<Object, Object> entries, Object key, Object value) {
        if (entries.containsKey(key)) {
            throw same(key, key, "Java");
        }
        entries.put(key, value);
    }

    /** An object that is equal for those keys that are equal in Python. */
    private static Object inPython(Object key) {
        if (key instanceof Boolean bool) {
            return bool ? BigDecimal.ONE : BigDecimal.ZERO;
        }
        if (key instanceof Float number) { // As it crosses: see PackedValues.
            return inPython(Double.parseDouble(number.toString()));
        }
        if (key instanceof Double number) {
            return Double.isFinite(number) ? plain(new BigDecimal(number)) : number;
        }
        if (key instanceof BigDecimal number) {
            return plain(number);
        }
        if (key instanceof Number number) {
            return plain(BigDecimal.valueOf(number.longValue()));
        }
        if (key instanceof byte[] bytes) {
            return ByteBuffer.wrap(bytes);
        }
        if (key instanceof Collection<?> list) {
            List<Object> forms = new ArrayList<>();
            list.forEach(element -> forms.add(inPython(element)));
            return forms;
        }
        return key;
    }

    private static BigDecimal plain(BigDecimal number) {
        return number.signum() == 0 ? BigDecimal.ZERO : number.stripTrailingZeros();
    }

    private static DataException same(Object first, Object second, String language) {
        return new DataException(
                "Two keys of a map, " + text(first) + " and " + text(second) + ", are one key in " + language + ".");
    }

    private static String text(Object key) {
        if (key == null) {
            return "null";
        }
        String text = key instanceof byte[] bytes ? bytes.length + " bytes" : key.toString();
        String shown = text.length() > MOST_CHARS ? text.substring(0, MOST_CHARS) + "..." : text;
        return shown + " (" + key.getClass().getSimpleName() + ")";
    }
}
