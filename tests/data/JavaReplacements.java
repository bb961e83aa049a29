import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Records what Matcher.replaceFirst makes of replacement strings. A line of the input: pattern, text, replacement, each as "x" and UTF-16BE in
 * hexadecimal digits, separated by blanks. A line of the output: "none" where the pattern is not found, "ok x<result>", or
 * "refused <exception>: <message>".
 *
 * Run with Java 17: java JavaReplacements.java < cases > recorded
 */
public class JavaReplacements {
    static String text(String hex) {
        StringBuilder text = new StringBuilder();
        for (int at = 1; at < hex.length(); at += 4) {
            text.append((char) Integer.parseInt(hex.substring(at, at + 4), 16));
        }
        return text.toString();
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split(" ");
            Matcher matcher = Pattern.compile(text(parts[0])).matcher(text(parts[1]));
            if (!matcher.find()) {
                out.println("none");
                continue;
            }
            try {
                // Char by char: an encoder would replace half of a surrogate pair.
                String result = matcher.replaceFirst(text(parts[2])).chars().mapToObj(c -> String.format("%04x", c)).collect(Collectors.joining());
                out.println("ok x" + result);
            } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
                out.println("refused " + e.getClass().getSimpleName() + ": " + e.getMessage());
            }
        }
        out.flush();
    }
}
