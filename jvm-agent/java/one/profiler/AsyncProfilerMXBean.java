// SPDX-License-Identifier: MIT
package one.profiler;

import java.io.IOException;

/** The bean {@code one.profiler:type=AsyncProfiler}, which {@link Agent} registers. */
public interface AsyncProfilerMXBean {
    /** Records from now on, and forgets what was recorded. */
    void start(String event, long interval);

    /** Records from now on; reports will also have what was recorded. */
    void resume(String event, long interval);

    void stop();

    long getSamples();

    String getVersion();

    /** Executes arguments of an agent, and returns what there is to say. */
    String execute(String command) throws IOException;

    String dumpCollapsed(Counter counter);

    /** {@code rows} 0: all. */
    String dumpTraces(int rows);

    String dumpFlat(int rows);

    byte[] dumpOtlp(Counter counter);
}
