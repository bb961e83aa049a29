import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/**
 * Records what java.util.regex makes of patterns. A line of the input: the pattern and texts, each as UTF-16BE in hexadecimal digits,
 * separated by blanks. A line of the output: "refused <reason>", or for each text matches() and find(), each "-" or the bounds of all groups
 * (counted in code points), separated by blanks.
 *
 * Run with Java 17: java JavaPatterns.java < cases > recorded
 */
public class JavaPatterns {
    static String text(String hex) {
        return new String(HexFormat.of().parseHex(hex.substring(1)), StandardCharsets.UTF_16BE);
    }

    static String bounds(boolean found, Matcher matcher, String text) {
        if (!found) {
            return "-";
        }
        List<String> all = new ArrayList<>();
        for (int group = 0; group <= matcher.groupCount(); group++) {
            int start = matcher.start(group);
            all.add(start < 0 ? "x" : text.codePointCount(0, start) + ":" + text.codePointCount(0, matcher.end(group)));
        }
        return String.join(",", all);
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split(" ");
            Pattern pattern;
            try {
                pattern = Pattern.compile(text(parts[0]));
            } catch (PatternSyntaxException e) {
                out.println("refused " + e.getDescription());
                continue;
            } catch (Throwable e) {
                out.println("refused " + e.getClass().getName());
                continue;
            }
            List<String> results = new ArrayList<>();
            for (int at = 1; at < parts.length; at++) {
                String text = text(parts[at]);
                try {
                    Matcher matcher = pattern.matcher(text);
                    results.add(bounds(matcher.matches(), matcher, text));
                    matcher.reset();
                    results.add(bounds(matcher.find(), matcher, text));
                } catch (Throwable e) {
                    results.add("!" + e.getClass().getSimpleName());
                    results.add("!");
                }
            }
            out.println("ok " + String.join(" ", results));
        }
        out.flush();
    }
}
