// SPDX-License-Identifier: MIT
package workload;

import java.lang.reflect.Method;
import java.util.Arrays;

/** Repeat CLASS METHOD ARGS...: calls a static method with these arguments without end. */
public final class Repeat {
    private Repeat() {
    }

    public static void main(String[] args) throws Exception {
        Method method = Class.forName(args[0]).getMethod(args[1], String[].class);
        Workload.ready();
        for (;;)
            method.invoke(null, (Object) Arrays.copyOfRange(args, 2, args.length));
    }
}
