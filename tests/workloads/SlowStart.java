// SPDX-License-Identifier: MIT
package workload;

/** For -Djava.system.class.loader: takes its time, in which the JVM is still starting, but can be attached to. */
public final class SlowStart extends ClassLoader {
    public SlowStart(ClassLoader parent) throws InterruptedException {
        super(parent);
        Thread.sleep(Long.getLong("start.ms", 1000));
    }
}
