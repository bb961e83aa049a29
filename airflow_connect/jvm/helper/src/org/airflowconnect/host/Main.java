package org.airflowconnect.host;

import java.io.IOException;
import java.nio.file.Path;

/**
 * The program of the plugin host: connects to its parent, then answers requests one by one until it is told to close.
 *
 * <p>Plugins run in this JVM because they may do anything to it: end it, fill it, leave threads behind. It therefore
 * ends by {@code halt}, which nothing can stop, and as soon as its parent is gone.
 */
public final class Main {
    private static final int WIRE_VERSION = 1;
    private static final int NO_CONNECTION = 42;

    private Main() {}

    /** The only argument is the path of the parent's socket: arguments are visible to others, requests are not. */
    public static void main(String[] arguments) {
        LogSettings.apply();
        Path socket = Path.of(arguments[0]);
        PrivateFolder folder = new PrivateFolder(socket);
        ParentWatch.start(folder);
        Thread.currentThread().setName("connect-request");
        Operations operations = new Operations();
        int code = 0;
        try (Wire wire = Wire.connect(socket)) {
            serve(wire, operations);
        } catch (IOException gone) {
            System.err.println("The connection to the parent process has ended: " + gone);
            code = NO_CONNECTION;
        }
        folder.remove(); // The parent does that, too, unless it was killed, perhaps while it closes this host.
        if (operations.isOrderly()) {
            System.exit(code); // Java writes an archive of class data in an orderly end only.
        }
        Runtime.getRuntime().halt(code);
    }

    private static void serve(Wire wire, Operations operations) throws IOException {
        wire.send(Json.object()
                .put("hello", WIRE_VERSION)
                .put("connect", ConnectVersion.get())
                .put("java", System.getProperty("java.version")));
        while (!operations.isClosed()) {
            Request request = wire.receive();
            if (request == null) {
                return;
            }
            Reply reply = operations.answer(request);
            wire.send(reply.json(), reply.buffers());
        }
    }
}
