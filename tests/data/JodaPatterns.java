import java.nio.charset.StandardCharsets;
import java.io.PrintStream;
import java.util.Locale;
import org.joda.time.DateTime;
import org.joda.time.DateTimeZone;
import org.joda.time.Duration;
import org.joda.time.format.DateTimeFormat;
import org.joda.time.format.DateTimeFormatter;
import org.joda.time.format.ISODateTimeFormat;

/**
 * Records what Joda-Time does with date patterns, zones, buckets and ISO texts into joda_patterns.jsonl.
 *
 * Run with the Joda-Time jar that Spark brings (2.14.1) and any Java 17:
 *   java -Duser.timezone=UTC -Duser.language=en -cp .../pyspark/jars/joda-time-2.14.1.jar JodaPatterns.java > joda_patterns.jsonl
 */
public class JodaPatterns {
    static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

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

    static final String[] PATTERNS = {
        "'year'=YYYY/'month'=MM/'day'=dd", "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH",
        "'year'=yyyy/'month'=MM/'day'=dd/'hour'=HH/'minute'=mm", "YYYY-MM-dd", "yyyyMMdd", "'dt'=yyyy-MM-dd'T'HH",
        "G", "GG", "GGGG", "C", "CC", "CCC", "Y", "YY", "YYY", "YYYY", "YYYYY", "YYYYYYYYYYYY", "x", "xx", "xxx", "xxxx", "xxxxx",
        "w", "ww", "www", "e", "ee", "E", "EE", "EEE", "EEEE", "EEEEE", "y", "yy", "yyy", "yyyy", "yyyyyy", "D", "DD", "DDD", "DDDD",
        "M", "MM", "MMM", "MMMM", "MMMMM", "d", "dd", "ddd", "a", "aa", "aaaa", "K", "KK", "h", "hh", "hhh", "H", "HH", "k", "kk",
        "m", "mm", "s", "ss", "S", "SS", "SSS", "SSSS", "SSSSSS", "SSSSSSSSSSSS", "z", "zz", "zzz", "zzzz", "Z", "ZZ", "ZZZ", "ZZZZ",
        "yyyyMMddHHmmssSSS", "xxxx-'W'ww-e", "yyMMdd", "''", "'o''clock'", "h 'o''clock' a", "'a", "HH'", "''''", "'''", "'x'''HH", "HH:mm:ss.SSSZZ",
        "[HH]{mm}", "'M'M'd'd", "yyyy'T", "/HH//mm/", "\u00e4HH\u20ac", "1yyyy2", "''yyyy''", "'' '' HH", "'%'yyyy%2F",
        "", "year='YYYY'", "YYYY/MM/dd/b", "t", "yyyy-MM-ddTHH", "n", "q", "Qyyyy", "u", "V", "X", "L", "A", "N", "I", "W", "F", "'abc'l",
    };
    static final String[] LOCALES = {"en", "en_US", "en-US", "de", "fr", "xx", "US", "ja", "ru"};
    static final String[] ZONES = {
        "UTC", "Europe/Berlin", "America/New_York", "America/Los_Angeles", "Asia/Kolkata", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia",
        "Europe/Dublin", "Africa/Casablanca", "America/Havana", "Asia/Kathmandu", "America/St_Johns", "Asia/Beirut", "Asia/Tehran", "Asia/Tokyo", "+05:30", "-08:00", "-00:30", "GMT", "Etc/GMT+5",
    };
    static final String[] ZONE_IDS = {
        "UTC", "GMT", "UT", "Z", "utc", "gmt", "Utc", "EST", "MST", "HST", "PST", "PST8PDT", "EST5EDT", "CET", "CST", "europe/berlin", "Europe/berlin", "Europe/Kiev", "Europe/Kyiv", "Asia/Calcutta", "US/Pacific",
        "Etc/UTC", "Etc/GMT-3", "+05:30", "-08:00", "+5", "+05", "+5:30", "+0530", "-0800", "+05:30:15", "+053015", "+05:30:15.123", "+24:00", "+23:59", "+23:60", "05:30", "+", "-", "", "+00:00", "-00:00", "+00",
        "UTC+1", "UTC+01:00", "GMT+1", "GMT+01:00", "UTC-5", "GMT+5:30", "UT+1", "Nowhere/Atall", " UTC", "posixrules", "Factory", "localtime", "SystemV/PST8", "+1:2", "+010", "+01:0", "+01000", "+01:00:", "+01:00:00", "-12", "Greenwich", "Zulu", "UCT", "ROC", "Universal", "W-SU", "WET", "Japan", "JST",
    };
    static final String[] INSTANTS = {
        "1970-01-01T00:00:00.000Z", "1969-12-31T23:59:59.999Z", "2024-12-30T12:34:56.789Z", "2021-01-03T23:59:59.999Z", "2020-02-29T00:00:00.001Z", "2009-12-31T06:07:08.009Z",
        "2024-03-31T00:30:00Z", "2024-03-31T01:30:00Z", "2024-10-27T00:30:00Z", "2024-10-27T01:30:00Z", "2024-11-03T05:30:00Z", "2024-11-03T06:30:00Z", "2024-03-10T06:59:59.999Z", "2024-03-10T07:00:00Z",
        "2017-10-15T02:30:00Z", "2017-10-15T03:30:00Z", "2018-02-18T01:30:00Z", "2018-02-18T02:30:00Z", "2024-04-06T14:45:00Z", "2024-04-06T15:15:00Z", "2024-10-05T15:40:00Z", "2011-12-30T09:00:00Z", "2011-12-30T10:00:00Z",
        "1900-01-01T00:00:00Z", "0001-06-15T12:00:00Z", "-0044-03-15T12:00:00Z", "9999-12-31T23:59:59.999Z", "+12345-07-08T09:10:11.012Z", "2038-01-19T03:14:08Z", "2037-07-01T00:00:00Z", "2050-07-01T00:00:00Z",
        "2023-03-26T00:15:00Z", "2024-11-03T04:15:00Z", "2024-11-03T05:15:00Z", "2024-03-10T05:15:00Z",
    };
    static final long[] DURATIONS = {1, 1000, 60000, 300000, 900000, 3600000, 5400000, 7200000, 10800000, 21600000, 25200000, 43200000, 86400000, 604800000, 2592000000L};
    static final String[] ISO = {
        "2024-12-30T12:34:56.789Z", "2024-12-30T12:34:56Z", "2024-12-30T12:34Z", "2024-12-30T12Z", "2024-12-30T12:34:56.789+02:00", "2024-12-30T12:34:56+0200", "2024-12-30T12:34:56+02", "2024-12-30T12:34:56-08:00",
        "2024-12-30T12:34:56.123456789Z", "2024-12-30T12:34:56.1Z", "2024-12-30T12:34:56,5Z", "2024-12-30T12:34.5Z", "2024-12-30T12.25Z", "2024-12-30T12:34:56.789", "2024-12-30T12:34:56", "2024-12-30T12:34", "2024-12-30T12", "2024-12-30T", "2024-12-30", "2024-12", "2024", "2024-365", "2024-W52", "2024-W52-1", "2024-W01-1T10:20", "2024-366T01",
        "T12:34", "T12:34:56Z", "12:34", "2024-12-30 12:34:56", "2024-12-30t12:34:56z", "2024-1-2", "2024-1-2T3:4:5", "20241230", "20241230T123456Z", "1735562096789", "-1735562096789", "-1", "0", "12345", "99999", "-2024-01-01", "+2024-01-01", "12024-01-01", "024-01-01", "24-01-01",
        "2024-13-01", "2024-02-30", "2023-02-29", "2024-12-30T24:00", "2024-12-30T23:60", "2024-12-30T23:59:60", "2024-12-30T12:34:56.Z", "2024-12-30T12:34:56.789Zx", " 2024-12-30", "2024-12-30 ", "", "abc", "2024-12-30T12:34:56.789[UTC]", "2024-12-30T12:34:56 Z", "2024-12-30T12:34:56.789+02:00:30", "2024-12-30Z", "2024-12-30+02:00", "2024-12-30TZ", "2024-12-30T+02:00", "2024Z", "2024-12-30T12:34:56.789+5", "2024-12-30T12:34:56.789+05:3", "T", "T12", "TZ", "2024-W54-1", "2024-W53-1", "2020-W53-7", "2024-000", "2024-00-10", "2024-12-30T1:2:3.4Z", "2024-12-30T001:02", "2024-012-30", "9223372036854775807", "9223372036854775808", "99999999999999999999", "292278994-01-01", "2024-12-30T12:34:56.7890000000001Z", "2024-12-30T12:34:56.9999Z", "2024-12-30T12:34,5", "2024-12-30T12:34:56UTC", "2024-12-30T12:34:56+24:00", "2024-12-30T12:34:56-00:00", "1969-12-31T23:59:59.9999Z", "-0001-01-01T00:00:00Z", "0000-01-01", "00000-01-01",
    };

    static String list(Object[] items) {
        StringBuilder out = new StringBuilder("[");
        for (Object item : items) {
            out.append(out.length() > 1 ? "," : "").append(item instanceof Long ? item.toString() : q((String) item));
        }
        return out.append("]").toString();
    }

    static Long[] instants() {
        Long[] out = new Long[INSTANTS.length];
        for (int i = 0; i < out.length; i++) {
            out[i] = DateTime.parse(INSTANTS[i]).getMillis();
        }
        return out;
    }

    static void format(String pattern, String locale, String zone, Long... instants) {
        DateTimeFormatter f = DateTimeFormat.forPattern(pattern).withZone(DateTimeZone.forID(zone)).withLocale(new Locale(locale));
        String[] texts = new String[instants.length];
        for (int i = 0; i < texts.length; i++) {
            texts[i] = new DateTime((long) instants[i]).toString(f);
        }
        OUT.println("{\"kind\":\"format\",\"pattern\":" + q(pattern) + ",\"locale\":" + q(locale) + ",\"zone\":" + q(zone) + ",\"ms\":" + list(instants)
            + ",\"texts\":" + list(texts) + "}");
    }

    static void patterns() {
        int n = 0;
        for (String pattern : PATTERNS) {
            try {
                DateTimeFormat.forPattern(pattern);
            } catch (IllegalArgumentException e) {
                OUT.println("{\"kind\":\"illegal\",\"pattern\":" + q(pattern) + ",\"message\":" + q(e.getMessage()) + "}");
                continue;
            }
            format(pattern, "en", ZONES[n++ % 5], instants());
        }
        Long[] months = new Long[12];
        for (int month = 1; month <= 12; month++) {
            months[month - 1] = new DateTime(2024, month, 2 * month, 2 * month - 1, 0, DateTimeZone.UTC).getMillis();
        }
        for (String locale : LOCALES) {
            for (String pattern : new String[] {"G", "E", "EEEE", "MMM", "MMMM", "a", "YYYY-MM-dd HH", "w e"}) {
                format(pattern, locale, "Europe/Berlin", months);
            }
        }
        for (String zone : ZONES) {
            for (String pattern : new String[] {"yyyy-MM-dd'T'HH:mm:ss.SSSZZ", "Z", "ZZZ"}) {
                format(pattern, "en", zone, instants());
            }
            for (String locale : new String[] {"en", "de"}) {
                format("z", locale, zone, 1704067200000L, 1719792000000L);
                format("zzzz", locale, zone, 1704067200000L, 1719792000000L);
            }
        }
    }

    static void buckets() {
        for (String zoneId : ZONES) {
            DateTimeZone zone = DateTimeZone.forID(zoneId);
            for (long duration : DURATIONS) {
                Long[] instants = instants();
                Long[] buckets = new Long[instants.length];
                for (int i = 0; i < buckets.length; i++) {
                    long local = zone.convertUTCToLocal(instants[i]);
                    buckets[i] = zone.convertLocalToUTC((local / duration) * duration, false);
                }
                OUT.println("{\"kind\":\"bucket\",\"zone\":" + q(zoneId) + ",\"duration\":" + duration + ",\"ms\":" + list(instants) + ",\"buckets\":" + list(buckets) + "}");
            }
        }
    }

    static void zones() {
        for (String id : ZONE_IDS) {
            try {
                DateTimeZone zone = DateTimeZone.forID(id);
                OUT.println("{\"kind\":\"zone\",\"id\":" + q(id) + ",\"canonical\":" + q(zone.getID()) + ",\"winter\":" + zone.getOffset(1704067200000L) + ",\"summer\":" + zone.getOffset(1719792000000L) + "}");
            } catch (IllegalArgumentException e) {
                OUT.println("{\"kind\":\"zone\",\"id\":" + q(id) + ",\"error\":" + q(e.getMessage()) + "}");
            }
        }
    }

    static void iso() {
        DateTimeFormatter parser = ISODateTimeFormat.dateTimeParser();
        for (String text : ISO) {
            try {
                OUT.println("{\"kind\":\"iso\",\"text\":" + q(text) + ",\"ms\":" + parser.parseMillis(text) + "}");
            } catch (IllegalArgumentException e) {
                OUT.println("{\"kind\":\"iso\",\"text\":" + q(text) + ",\"error\":" + q(e.getMessage()) + "}");
            }
        }
    }

    static void days() {
        for (String zoneId : ZONES) {
            DateTimeZone zone = DateTimeZone.forID(zoneId);
            Long[] instants = instants();
            Long[] starts = new Long[instants.length];
            Long[] lengths = new Long[instants.length];
            for (int i = 0; i < starts.length; i++) {
                DateTime start = new DateTime((long) instants[i]).withZone(zone).withTimeAtStartOfDay();
                starts[i] = start.getMillis();
                lengths[i] = new Duration(start, start.plusDays(1)).getMillis();
            }
            OUT.println("{\"kind\":\"day\",\"zone\":" + q(zoneId) + ",\"ms\":" + list(instants) + ",\"starts\":" + list(starts) + ",\"lengths\":" + list(lengths) + "}");
        }
    }

    public static void main(String[] args) {
        patterns();
        buckets();
        zones();
        iso();
        days();
    }
}
