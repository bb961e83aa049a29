import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.text.ParseException;
import java.text.SimpleDateFormat;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.Locale;
import java.util.TimeZone;

/**
 * Records what java.text.SimpleDateFormat writes and reads into simple_date_patterns.jsonl.
 *
 * Run with Java 17, which Kafka Connect 4.3.1 was recorded with:
 *   java -Duser.timezone=UTC -Duser.language=en -Duser.country=US SimpleDatePatterns.java > simple_date_patterns.jsonl
 */
public class SimpleDatePatterns {
    static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    // 2000-01-01T00:00:00Z: the hundred years of two-digit years begin here.
    static final Date CENTURY = new Date(946684800000L);

    static final long[] INSTANTS = {
        0L, -1L, 1L, 1700000000123L, 1704067199999L, 1704067200000L, 951782400000L, 1230768000000L, -12219292800000L,
        -12219292800001L, -62135769600000L, -62135769600001L, -99999999999999L, 253402300800000L, 1700000000123000L,
        1325376000000L, 1735603200000L, 1709164800000L, 43200000L, 46800000L, 1388275200000L
    };

    static final String[] PATTERNS = {
        "yyyy-MM-dd'T'HH:mm:ss.SSS", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "yyyy-MM-dd'T'HH:mm:ssZ", "yyyy-MM-dd HH:mm:ss z", "yyyy-MM-dd",
        "yyyyMMdd", "yyyyMMddHHmmssSSS", "yyMMdd", "yy/M/d", "y-M-d", "yyyyy.MMMMM.dd GGG hh:mm aaa", "EEE, d MMM yyyy HH:mm:ss Z",
        "EEEE, MMMM d, yyyy", "h:mm a", "K:mm a, z", "k", "kk:mm", "hh 'o''clock' a, zzzz", "D", "DDD yyyy", "yyyyDDD", "u", "uu",
        "MM", "MMM", "MMMM", "LL", "LLL", "LLLL", "dd/MM/yyyy", "HHmm", "HHmmss", "HH:mm:ss.SSSSSS", "S", "SS", "SSS", "ss.S", "m", "s",
        "GGGG yyyy", "yyyy G", "X", "XX", "XXX", "Z", "z", "zzzz", "''", "'T'", "a", "aa h", "d", "ddd", "yyyy", "yyy", "yy", "y",
        "yyyy-MM-dd'T'HH:mm:ss'Z'", "MM-dd", "HH 'h' mm", "yyyy MM dd", "dMMMyyyy", "E", "EE", "EEEEE", "yyyy-D", "d D yyyy", "H h a",
        "yyyyX", "HHz", "HHZ", "ssSSSX", "yyyy年MM月", "d.M.yyyy H.m",
        "w", "ww", "W", "F", "Y", "YY", "YYYY", "YYYY-'W'ww-u", "yyyy W F"
    };

    static final String[] TEXTS = {
        "", " ", "garbage", "2023-11-14T22:13:20.123", "2023-11-14T22:13:20.1", "2023-11-14T22:13:20.123456", "2023-11-14T22:13:20Z",
        "2023-11-14T22:13:20.123Z", "2023-11-14T22:13:20.123+01:00", "2023-11-14T22:13:20.123+0100", "2023-11-14T22:13:20+0530",
        "2023-11-14T22:13:20-08", "2023-11-14", " 2023- 11-\t14", "2023-13-32", "2023-0-0", "2023--1-14", "-5-11-14", "+2023-11-14",
        "2023-11-14 22:13:20 PST", "2023-11-14 22:13:20 pdt", "2023-11-14 22:13:20 GMT+2:30", "2023-11-14 22:13:20 GMT", "2023-11-14 22:13:20 UTC",
        "2023-11-14 22:13:20 UT", "2023-11-14 25:61:61 UTC", "20231114", "2023111", "20231114221320123", "231114", "991231", "00/1/1", "99/12/31",
        "5/1/2", "005/1/1", "123/1/1", "Tue, 14 Nov 2023 22:13:20 +0000", "mon, 14 november 2023 22:13:20 -0130", "Tuesday, November 14, 2023",
        "10:13 PM", "12:00 AM", "12:00 pm", "0:30 AM", "13:30 PM", "24", "24:15", "25", "366", "400 2023", "2023318", "2023-318", "14 318 2023",
        "318 14 2023", "22 10 PM", "7", "3", "Nov", "november", "NOVEMBER", "Novem", "14/11/2023", "31/04/2023", "2213", "221320", "22:13:20.123456",
        "AD 2023", "bc 44", "2023 AD", "0 AD", "44 BC", "Z", "+01", "-0130", "+01:30", "+24", "+0160", "UTC", "gmt", "'", "T", "PM", "am 11",
        "2023", "44", "9999999999", "99999999999999999999", "14Nov2023", "5UTC", "05+0100", "20123Z", "2023年11月", "14.11.2023 7.5", "2 W 3"
    };

    static String q(String text) {
        if (text == null) {
            return "null";
        }
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 32) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }

    public static void main(String[] arguments) {
        Locale.setDefault(Locale.US);
        for (String pattern : PATTERNS) {
            SimpleDateFormat format = new SimpleDateFormat(pattern);
            format.setTimeZone(TimeZone.getTimeZone("UTC"));
            format.set2DigitYearStart(CENTURY);
            List<String> written = new ArrayList<>();
            for (long instant : INSTANTS) {
                written.add("[" + instant + "," + q(format.format(new Date(instant))) + "]");
            }
            List<String> read = new ArrayList<>();
            for (String text : TEXTS) {
                // A format keeps its zone when a text names another one: each text gets a fresh format.
                SimpleDateFormat fresh = new SimpleDateFormat(pattern);
                fresh.setTimeZone(TimeZone.getTimeZone("UTC"));
                fresh.set2DigitYearStart(CENTURY);
                String result;
                try {
                    result = Long.toString(fresh.parse(text).getTime());
                } catch (ParseException e) {
                    result = "null";
                }
                read.add("[" + q(text) + "," + result + "]");
            }
            OUT.println("{\"pattern\":" + q(pattern) + ",\"written\":[" + String.join(",", written) + "],\"read\":["
                + String.join(",", read) + "]}");
        }
        for (String pattern : new String[] {"QQQ", "yyyy-MM-dd'T", "XXXX", "b", "'", "yyyy n"}) {
            String message;
            try {
                new SimpleDateFormat(pattern);
                message = null;
            } catch (IllegalArgumentException e) {
                message = e.getMessage();
            }
            OUT.println("{\"pattern\":" + q(pattern) + ",\"refused\":" + q(message) + "}");
        }
    }
}
