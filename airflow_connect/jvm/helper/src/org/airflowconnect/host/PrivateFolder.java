package org.airflowconnect.host;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;

/**
 * The folder that the parent made for its socket, and for temporary files of plugins. A parent that was killed cannot
 * remove it, so this JVM does.
 */
final class PrivateFolder {
    private final Path folder;

    PrivateFolder(Path socket) {
        folder = socket.getParent();
    }

    void remove() {
        try {
            Files.walkFileTree(folder, new Removal());
        } catch (NoSuchFileException removed) {
            return; // The parent was there after all.
        } catch (IOException error) {
            System.err.println(folder + " cannot be removed: " + error);
        }
    }

    /** Links are removed, not followed. */
    private static final class Removal extends SimpleFileVisitor<Path> {
        @Override
        public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
            Files.deleteIfExists(file);
            return FileVisitResult.CONTINUE;
        }

        @Override
        public FileVisitResult visitFileFailed(Path file, IOException error) throws IOException {
            if (error instanceof NoSuchFileException) {
                return FileVisitResult.CONTINUE; // A thread of the plugin has removed it.
            }
            throw error;
        }

        @Override
        public FileVisitResult postVisitDirectory(Path directory, IOException error) throws IOException {
            if (error != null) {
                throw error;
            }
            Files.deleteIfExists(directory);
            return FileVisitResult.CONTINUE;
        }
    }
}
