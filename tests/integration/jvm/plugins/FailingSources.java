package plugins;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.source.SourceRecord;

/** Sources that fail, each in one way. */
public final class FailingSources {
    private FailingSources() {}

    public static final class ConnectorThrowsInStart extends BaseSource {
        @Override
        public void start(Map<String, String> values) {
            throw new ConnectException("no such database", new IllegalStateException("refused"));
        }

        @Override
        public Class<? extends Task> taskClass() {
            return ThrowsInPoll.PollTask.class;
        }
    }

    public static final class ConnectorExitsInStart extends BaseSource {
        @Override
        public void start(Map<String, String> values) {
            System.exit(7);
        }

        @Override
        public Class<? extends Task> taskClass() {
            return ThrowsInPoll.PollTask.class;
        }
    }

    public static final class ConnectorRaisesError extends BaseSource {
        @Override
        public void start(Map<String, String> values) {
            super.start(values);
            if (values.containsKey("late")) {
                Thread monitor = new Thread(() -> {
                    java.util.concurrent.locks.LockSupport.parkNanos(300_000_000);
                    context().requestTaskReconfiguration();
                    context().raiseError(new ConnectException("the monitor failed"));
                });
                monitor.setDaemon(true);
                monitor.start();
            } else {
                context().raiseError(new ConnectException("raised at once"));
            }
        }

        @Override
        public Class<? extends Task> taskClass() {
            return ThrowsInPoll.PollTask.class;
        }
    }

    public static final class ReturnsNothing extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return ThrowsInPoll.PollTask.class;
        }

        @Override
        public List<Map<String, String>> taskConfigs(int most) {
            return null;
        }

        @Override
        public org.apache.kafka.common.config.ConfigDef config() {
            return null;
        }
    }

    /** Prints its configuration, and has its password in an exception. */
    public static final class TellsSecrets extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return TellTask.class;
        }

        public static final class TellTask extends BaseTask {
            @Override
            public void start(Map<String, String> values) {
                System.out.println("config " + values);
                throw new ConnectException("refused: " + values.get("url"));
            }
        }
    }

    public static final class ThrowsInStart extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return StartTask.class;
        }

        public static final class StartTask extends BaseTask {
            @Override
            public void start(Map<String, String> values) {
                throw new ConnectException("no start");
            }
        }
    }

    public static final class ThrowsInPoll extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return PollTask.class;
        }

        public static final class PollTask extends BaseTask {
            @Override
            protected List<SourceRecord> misbehave() {
                throw new IllegalArgumentException("plugin bug", new NullPointerException("inner"));
            }
        }
    }

    public static final class ErrorInPoll extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return ErrorTask.class;
        }

        public static final class ErrorTask extends BaseTask {
            @Override
            protected List<SourceRecord> misbehave() {
                throw new NoClassDefFoundError("com/example/Missing");
            }
        }
    }

    public static final class ExitsInPoll extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return ExitTask.class;
        }

        public static final class ExitTask extends BaseTask {
            @Override
            protected List<SourceRecord> misbehave() {
                System.out.println("the plugin says goodbye");
                System.exit(3);
                return null;
            }
        }
    }

    public static final class HaltsInPoll extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return HaltTask.class;
        }

        public static final class HaltTask extends BaseTask {
            @Override
            protected List<SourceRecord> misbehave() {
                Runtime.getRuntime().halt(9);
                return null;
            }
        }
    }

    public static final class SegfaultsInPoll extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return SegfaultTask.class;
        }

        public static final class SegfaultTask extends BaseTask {
            @Override
            protected List<SourceRecord> misbehave() {
                try {
                    Class<?> unsafe = Class.forName("sun.misc.Unsafe");
                    Field field = unsafe.getDeclaredField("theUnsafe");
                    field.setAccessible(true);
                    unsafe.getMethod("putAddress", long.class, long.class).invoke(field.get(null), 0L, 0L);
                } catch (ReflectiveOperationException error) {
                    throw new IllegalStateException(error);
                }
                return null;
            }
        }
    }

    public static final class FillsHeap extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return HeapTask.class;
        }

        public static final class HeapTask extends BaseTask {
            private final List<byte[]> kept = new ArrayList<>();

            @Override
            protected List<SourceRecord> misbehave() {
                while (true) {
                    kept.add(new byte[1 << 20]);
                }
            }
        }
    }

    public static final class HangsInPoll extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return HangTask.class;
        }

        public static final class HangTask extends BaseTask {
            @Override
            protected List<SourceRecord> misbehave() throws InterruptedException {
                Thread.sleep(3_600_000);
                return null;
            }
        }
    }

    /** Swallows interrupts, in poll and in stop. */
    public static final class HangsForEver extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return ForEverTask.class;
        }

        public static final class ForEverTask extends BaseTask {
            @Override
            protected List<SourceRecord> misbehave() {
                hang();
                return null;
            }

            @Override
            public void stop() {
                hang();
            }

            private static void hang() {
                while (true) {
                    try {
                        Thread.sleep(1000);
                    } catch (InterruptedException ignored) {
                        // As plugins do that catch everything.
                    }
                }
            }
        }
    }

    public static final class ThrowsInStop extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return StopTask.class;
        }

        public static final class StopTask extends BaseTask {
            @Override
            public void stop() {
                throw new IllegalStateException("bug");
            }
        }
    }

    public static final class LeaksThread extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return LeakTask.class;
        }

        public static final class LeakTask extends BaseTask {
            @Override
            public void start(Map<String, String> values) {
                super.start(values);
                new Thread(() -> HangsForEver.ForEverTask.hang(), "leaked").start();
            }
        }
    }

    public static final class LeavesChild extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return ChildTask.class;
        }

        public static final class ChildTask extends BaseTask {
            @Override
            public void start(Map<String, String> values) {
                super.start(values);
                try {
                    Process child = new ProcessBuilder("sleep", "600").inheritIO().start();
                    System.out.println("child " + child.pid());
                } catch (java.io.IOException error) {
                    throw new ConnectException(error);
                }
            }
        }
    }

    public static final class Floods extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return FloodTask.class;
        }

        public static final class FloodTask extends BaseTask {
            @Override
            protected List<SourceRecord> batch() {
                for (int i = 0; i < 20_000; i++) {
                    System.out.println("x".repeat(100));
                }
                return super.batch();
            }
        }
    }

    /** Kafka's own retriable exception first, Connect's then, and records in the end. */
    public static final class RetriableInPoll extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return RetryTask.class;
        }

        public static final class RetryTask extends BaseTask {
            private int failures;

            @Override
            public List<SourceRecord> poll() throws InterruptedException {
                if (failures++ < 3) {
                    throw failures == 1
                            ? new org.apache.kafka.common.errors.TimeoutException("busy")
                            : new RetriableException("later");
                }
                return super.poll();
            }
        }
    }
}
