package org.airflowconnect.host;

/**
 * Ends this JVM when its parent has ended. A closed socket would tell that as well, but nobody reads the socket while a
 * plugin is being called.
 */
final class ParentWatch {
    private static final int PARENT_GONE = 41;
    private static final long INTERVAL_MS = 1000;

    private ParentWatch() {}

    static void start(PrivateFolder folder) {
        long parent = parent();
        Thread watch = new Thread(() -> watch(parent, folder), "parent-watch");
        watch.setDaemon(true);
        watch.start();
    }

    private static void watch(long parent, PrivateFolder folder) {
        try {
            while (parent() == parent) {
                Thread.sleep(INTERVAL_MS);
            }
        } catch (InterruptedException unexpected) {
            // A plugin that interrupts every thread it finds must not leave a JVM behind.
            System.err.println("The watch for the parent process was interrupted.");
        }
        folder.remove();
        Runtime.getRuntime().halt(PARENT_GONE);
    }

    private static long parent() {
        return ProcessHandle.current().parent().map(ProcessHandle::pid).orElse(0L);
    }
}
