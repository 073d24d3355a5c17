// SPDX-License-Identifier: MIT
package one.profiler;

import java.lang.management.ManagementFactory;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/** {@code -javaagent:duet-api.jar=ARGUMENTS}: registers the bean, and executes the arguments. */
public class Agent {
    private Agent() {
    }

    public static void premain(String arguments) throws Exception {
        agentmain(arguments);
    }

    public static void agentmain(String arguments) throws Exception {
        AsyncProfiler profiler = AsyncProfiler.getInstance();
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        ObjectName name = new ObjectName("one.profiler:type=AsyncProfiler");

        if (!server.isRegistered(name))
            server.registerMBean(profiler, name);
        if (arguments != null && !arguments.isEmpty())
            profiler.execute(arguments);
    }
}
