/* SPDX-License-Identifier: MIT */
/*
 * C++ whose frames have destructors and handlers, so that their call frame information names a personality and data of
 * the language. The leaf throws; the runtime's own unwinder runs on top of the frames. Says READY and runs until killed.
 */
#include <cstdio>
#include <stdexcept>
#include <string>
#include <unistd.h>

static volatile unsigned long sink;

template <int N> struct chained {
	__attribute__((noipa)) static void run(const std::string &text)
	{
		std::string longer = text + "a piece of text that is too long for a string without memory";

		chained<N - 1>::run(longer);
		sink = sink + longer.size();
	}
};

template <> struct chained<0> {
	__attribute__((noipa)) static void run(const std::string &text)
	{
		for (unsigned i = 0; i < 200000; i++)
			sink = sink + i;
		throw std::runtime_error(text);
	}
};

__attribute__((noipa)) static void catch_it()
{
	try {
		chained<10>::run("");
	} catch (const std::exception &error) {
		sink = sink + 1;
	}
}

int main()
{
	alarm(60); /* should nobody end it */
	std::puts("READY");
	std::fflush(stdout);
	for (;;)
		catch_it();
}
