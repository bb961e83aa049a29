package org.airflowconnect.host;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.runtime.WorkerTransactionContext;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/**
 * The thread that polls a source task, transforms and converts its records, and builds frames ahead: one waits while
 * the next one is built.
 *
 * <p>Transaction marks are asked for here, right after poll() has returned: a plugin sets them for the batch that it
 * returns, and the next poll sets others.
 */
final class SourcePoller implements Runnable {
    private static final long MS = 1_000_000;
    private static final long PAUSE_NANOS = MS;
    private static final long LONG_PAUSE_NANOS = 10 * MS;
    private static final int SHORT_PAUSES = 20;
    private static final long READINESS_NANOS = 50 * MS;
    private static final String RETRIED = "its poll asked to be repeated: ";

    /** What ends a frame: see the wire's description. */
    record Limits(int rows, long bytes, boolean stopOnError) {}

    private final SourceTask task;
    private final Calls calls;
    private final SourceRecords records;
    private final WorkerTransactionContext transaction;
    private final Limits limits;
    private final Readiness readiness;
    private final BlockingQueue<Object> ready = new ArrayBlockingQueue<>(1);
    private final Thread thread = new Thread(this, "connect-poll");
    private SourceFrame frame = new SourceFrame(1);
    private int rowsOfBatch;
    private long bytesBeforeBatch;
    private boolean wasCut;
    private int pauses;
    private long lastReadiness;

    private final AtomicReference<SourceFrame> offered = new AtomicReference<>();
    private volatile boolean isStopping;
    private volatile boolean isFirst = true;
    private volatile int emptyPolls;
    private volatile long idleSince;
    /** When the last empty poll ended: a poll that is running may still find something. */
    private volatile long idleUntil;
    private volatile long pollingSince;
    private volatile String obstacle = "";

    SourcePoller(SourceTask task, Calls calls, SourceRecords records, Limits limits, Readiness readiness) {
        this.task = task;
        this.calls = calls;
        this.records = records;
        this.limits = limits;
        this.readiness = readiness;
        transaction = records.transaction();
        thread.setDaemon(true);
        thread.setContextClassLoader(calls.loader());
    }

    void start() {
        thread.start();
    }

    /** A SourceFrame, what ended polling (a Throwable), or null: nothing within that time. */
    Object take(long waitMs) throws InterruptedException {
        return ready.poll(waitMs, TimeUnit.MILLISECONDS);
    }

    /**
     * The frame that waits for the end of a poll that takes long, or null. It ends between two polls, and a poll may
     * take forever. Frames that are ready are older.
     */
    SourceFrame takeOffered() {
        return offered.getAndSet(null);
    }

    /**
     * Facts about a source that has nothing, or null if it has something by now. The facts are read before the queue:
     * an empty poll, or one with heartbeats alone, that is counted has put its frame there.
     */
    ObjectNode idle() {
        long now = System.nanoTime();
        long polling = pollingSince;
        String why = obstacle;
        int polls = emptyPolls;
        long until = idleUntil;
        long since = idleSince;
        long blockedMs = polling == 0 ? 0 : (now - polling) / MS;
        if (!ready.isEmpty()) {
            return null;
        }
        return Json.object()
                .put("state", "idle")
                .put("gated", readiness.isKnown())
                .put("ready", why.isEmpty())
                .put("why", why)
                .put("idle_ms", since == 0 ? 0 : Math.max(0, until - since) / MS)
                .put("empty_polls", polls)
                .put("blocked_ms", blockedMs)
                .put("stack", blockedMs >= 1000 ? stack() : "")
                .put("first", isFirst);
    }

    String stack() {
        StringBuilder text = new StringBuilder();
        for (StackTraceElement element : thread.getStackTrace()) {
            text.append("at ").append(element).append('\n');
        }
        return text.toString();
    }

    /** Lets the running poll be the last one. */
    void stopSoon() {
        isStopping = true;
    }

    /** Whether the thread has ended within that time; frames that nobody takes are thrown away. */
    boolean join(long waitMs) throws InterruptedException {
        long deadline = System.nanoTime() + waitMs * MS;
        while (thread.isAlive() && System.nanoTime() < deadline) {
            ready.clear();
            thread.join(10);
        }
        return !thread.isAlive();
    }

    void interrupt() {
        thread.interrupt();
    }

    @Override
    public void run() {
        try {
            while (!isStopping) {
                pollOnce();
            }
        } catch (InterruptedException stopping) {
            Thread.currentThread().interrupt();
        } catch (Throwable error) {
            hand(error);
        }
    }

    private void pollOnce() throws Exception {
        List<SourceRecord> batch;
        try {
            batch = poll();
        } catch (PluginFailure failure) {
            emitIfFilled(); // Records that were polled before are not lost with it.
            throw failure;
        }
        boolean isEmpty = batch == null || batch.isEmpty();
        boolean isQuiet = readiness.isQuiet(batch);
        if (!isEmpty) {
            isFirst = false;
            if (!isQuiet) {
                becomeActive("");
            }
            pauses = 0;
            try {
                addBatch(batch);
            } catch (RecordFailure | PluginFailure failure) {
                frame.markContinued(); // It ends in the middle of a batch.
                emitIfFilled();
                throw failure;
            }
        }
        markBatch();
        if (isQuiet) {
            emitIfFilled();
            countQuietPoll();
        } else if (wasCut || frame.writer.rows() >= limits.rows || frame.bytes() >= limits.bytes) {
            emitIfFilled();
        }
    }

    /** The batch; null if there is none, or if the plugin wants to be asked again. */
    private List<SourceRecord> poll() throws PluginFailure {
        boolean isOffered = !frame.isEmpty();
        if (isOffered) {
            offered.set(frame);
        }
        pollingSince = System.nanoTime();
        try {
            List<SourceRecord> batch = calls.call("poll", task.getClass().getName(), task::poll);
            if (obstacle.startsWith(RETRIED)) {
                becomeActive("");
            }
            return batch;
        } catch (PluginFailure failure) {
            Throwable cause = failure.getCause();
            boolean isRetriable = cause instanceof RetriableException
                    || cause instanceof org.apache.kafka.common.errors.RetriableException;
            if (!isRetriable) {
                throw failure;
            }
            becomeActive(RETRIED + Failures.text(cause));
            return null;
        } finally {
            pollingSince = 0;
            if (isOffered && offered.getAndSet(null) == null) {
                frame = new SourceFrame(frame.number() + 1);
            }
        }
    }

    private void addBatch(List<SourceRecord> batch) throws Exception {
        rowsOfBatch = 0;
        bytesBeforeBatch = frame.bytes();
        wasCut = false;
        for (SourceRecord record : batch) {
            if (rowsOfBatch >= limits.rows || frame.bytes() - bytesBeforeBatch >= limits.bytes) {
                cut();
            }
            addRecord(record);
            if (transaction != null) {
                markRecord(record);
            }
        }
        endOffsets();
    }

    /** Ends the frame inside a batch that is too large for one. */
    private void cut() throws Exception {
        endOffsets();
        frame.markContinued();
        emit();
        wasCut = true;
    }

    private void addRecord(SourceRecord record) throws RecordFailure, PluginFailure {
        Message message = null;
        try {
            message = records.convert(record);
            if (message == null) {
                frame.drop();
            } else {
                frame.add(message);
                rowsOfBatch++;
            }
        } catch (RecordFailure failure) {
            frame.fail(failure, SourceRecords.where(record));
            if (limits.stopOnError) {
                endOffsets();
                throw failure;
            }
        }
        frame.offsets.add(record);
        if (records.areCommitted()) {
            frame.keep(record, message);
        }
    }

    private void markRecord(SourceRecord record) throws Exception {
        if (transaction.shouldAbortOn(record)) {
            endOffsets();
            emitMarked("abort");
        }
        if (transaction.shouldCommitOn(record)) {
            endOffsets();
            emitMarked("commit");
        }
    }

    private void markBatch() throws InterruptedException {
        if (transaction == null) {
            return;
        }
        if (transaction.shouldAbortBatch()) {
            emitMarked("abort");
        }
        if (transaction.shouldCommitBatch()) {
            emitMarked("commit");
        }
    }

    private void endOffsets() throws PluginFailure {
        calls.run("poll", task.getClass().getName(), () -> frame.offsets.endBatch());
    }

    private void emitMarked(String kind) throws InterruptedException {
        frame.mark(kind);
        emit();
    }

    private void emitIfFilled() throws InterruptedException {
        if (!frame.isEmpty()) {
            emit();
        }
    }

    private void emit() throws InterruptedException {
        SourceFrame full = frame;
        frame = new SourceFrame(full.number() + 1);
        rowsOfBatch = 0;
        bytesBeforeBatch = 0;
        wasCut = false;
        ready.put(full);
    }

    private void hand(Throwable error) {
        try {
            ready.put(error);
        } catch (InterruptedException stopping) {
            Thread.currentThread().interrupt();
        }
    }

    private void becomeActive(String why) {
        emptyPolls = 0;
        idleSince = 0;
        obstacle = why;
    }

    /** Also keeps a source that returns at once from using a core. */
    private void countQuietPoll() {
        long now = System.nanoTime();
        if (!obstacle.startsWith(RETRIED)) {
            if (now - lastReadiness >= READINESS_NANOS || lastReadiness == 0) {
                lastReadiness = now;
                obstacle = readiness.obstacle();
            }
            if (obstacle.isEmpty()) {
                idleSince = idleSince == 0 ? Math.max(1, now) : idleSince;
                idleUntil = now;
                emptyPolls = emptyPolls + 1;
            } else {
                emptyPolls = 0;
                idleSince = 0;
            }
        }
        LockSupport.parkNanos(pauses++ < SHORT_PAUSES ? PAUSE_NANOS : LONG_PAUSE_NANOS);
    }
}
