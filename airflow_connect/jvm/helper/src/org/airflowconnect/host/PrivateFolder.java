package org.airflowconnect.host;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/** The folder that the parent made for its socket. A parent that was killed cannot remove it, so this JVM does. */
final class PrivateFolder {
    private final Path folder;

    PrivateFolder(Path socket) {
        folder = socket.getParent();
    }

    void remove() {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(folder)) {
            for (Path file : files) {
                Files.deleteIfExists(file);
            }
            Files.deleteIfExists(folder);
        } catch (NoSuchFileException removed) {
            return; // The parent was there after all.
        } catch (IOException error) {
            System.err.println(folder + " cannot be removed: " + error);
        }
    }
}
