// SPDX-License-Identifier: MIT
package workload;

/** A class loader for -Djava.system.class.loader that takes its time: the JVM is still starting, but can be attached to. */
public final class SlowStart extends ClassLoader {
    public SlowStart(ClassLoader parent) throws InterruptedException {
        super(parent);
        Thread.sleep(Long.getLong("start.ms", 1000));
    }
}
