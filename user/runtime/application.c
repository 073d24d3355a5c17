/* SPDX-License-Identifier: MIT */
#include "runtime/application.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"

/* Appends a jar without its folders, or a class or module/class as it is. */
static int add_name(const char *program, size_t len, struct buf *out)
{
	static const char suffix[] = ".jar";
	const char *slash = memrchr(program, '/', len);

	if (slash && len > strlen(suffix) && !memcmp(program + len - strlen(suffix), suffix, strlen(suffix))) {
		len -= (size_t)(slash + 1 - program);
		program = slash + 1;
	}
	if (!len)
		return -ENOENT;
	buf_add_str(out, APPLICATION_PREFIX);
	buf_add(out, program, len < APPLICATION_MAX ? len : APPLICATION_MAX);
	return 0;
}

/* Launcher options whose value is a separate argument; IsWhiteSpaceOption() in java.c, JDK 9 to 27. */
static const char takes_value[] =
	"-cp -classpath --class-path -p --module-path --add-modules --add-reads --add-exports --add-opens "
	"--upgrade-module-path --patch-module --source --limit-modules --enable-native-access";

/* The argument after this one, or NULL. The caller has checked that the last argument ends in NUL. */
static const char *next_argument(const char *argument, const char *end)
{
	argument += strlen(argument) + 1;
	return argument < end ? argument : NULL;
}

const char *application_find(const char *arguments, size_t len)
{
	static const char module[] = "--module=";
	const char *end = arguments + len, *at = arguments;

	if (!len || arguments[len - 1] || strcmp(basename(arguments), "java"))
		return NULL;
	while ((at = next_argument(at, end))) {
		if (text_is_word(at, "-jar -m --module"))
			return next_argument(at, end);
		if (!strncmp(at, module, strlen(module)))
			return at + strlen(module);
		if (*at == '@')
			return NULL;
		if (*at != '-')
			return at;
		if (text_is_word(at, takes_value) && !(at = next_argument(at, end)))
			break;
	}
	return NULL;
}

int application_from_arguments(const char *arguments, size_t len, struct buf *out)
{
	const char *program = application_find(arguments, len);

	return program ? add_name(program, strlen(program), out) : -ENOENT;
}

int application_from_command(const char *command, struct buf *out)
{
	return add_name(command, strcspn(command, " "), out);
}
