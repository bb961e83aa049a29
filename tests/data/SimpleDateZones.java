import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.text.ParseException;
import java.text.SimpleDateFormat;
import java.util.Locale;
import java.util.TimeZone;

/**
 * Records what java.text.SimpleDateFormat reads where a pattern has one, two or three zones, into simple_date_zones.tsv: pattern, text, and
 * milliseconds since 1970-01-01T00:00:00Z or null.
 *
 * Run with Java 17:
 *   java -Duser.timezone=UTC -Duser.language=en -Duser.country=US SimpleDateZones.java > simple_date_zones.tsv
 */
public class SimpleDateZones {
    static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    static final String[] NAMED = {
        "+0200", "-0330", "UTC", "utc", "GMT", "GMT+1:30", "EST", "EDT", "PST", "PDT", "CST", "CDT", "MST", "MDT", "Coordinated Universal Time"
    };

    static final String[] ISO = {"Z", "+05"};

    static void record(String zones, String text) {
        String pattern = "yyyy-MM-dd'T'HH:mm" + zones;
        SimpleDateFormat format = new SimpleDateFormat(pattern);
        format.setTimeZone(TimeZone.getTimeZone("UTC"));
        String read;
        try {
            read = Long.toString(format.parse(text).getTime());
        } catch (ParseException e) {
            read = "null";
        }
        OUT.println(pattern + "\t" + text + "\t" + read);
    }

    public static void main(String[] arguments) {
        Locale.setDefault(Locale.US);
        for (String date : new String[] {"2023-07-15T03:00", "1880-01-15T03:00"}) {
            for (String first : NAMED) {
                record(" z", date + " " + first);
                for (String second : NAMED) {
                    record(" z z", date + " " + first + " " + second);
                }
                for (String iso : ISO) {
                    record(" z X", date + " " + first + " " + iso);
                    record(" X z", date + " " + iso + " " + first);
                    for (String last : new String[] {"EDT", "UTC", "PST", "+0200"}) {
                        record(" z X z", date + " " + first + " " + iso + " " + last);
                    }
                }
            }
        }
    }
}
