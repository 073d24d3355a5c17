/* SPDX-License-Identifier: MIT */
#include "runtime/application.h"

#include <ctype.h>
#include <errno.h>
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

#define NAME_KEY "spark.app.name"

/* The value after "KEY=", or NULL. */
static const char *value_of(const char *text, const char *key)
{
	size_t len = strlen(key);

	return !strncmp(text, key, len) && text[len] == '=' ? text + len + 1 : NULL;
}

/* Options without a value, of SparkSubmitOptionParser, Spark 1.6 to 4.0. Spark's others have one. */
static const char switches[] = "--help -h --supervise --usage-error --verbose -v --version";

struct spark_options {
	const char *name, *conf_name;
	struct spark *spark;
};

static void take_option(struct spark_options *options, const char *option, size_t len, const char *value)
{
	static const char *const words[] = {"--name", "--properties-file", "--app-id"};
	const char **const fields[] = {&options->name, &options->spark->properties, &options->spark->id};
	const char *conf_name;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (len == strlen(words[i]) && !memcmp(option, words[i], len) && *value)
			*fields[i] = value;
	if ((len == strlen("--conf") && !memcmp(option, "--conf", len)) || (len == 2 && !memcmp(option, "-c", len))) {
		conf_name = value_of(value, NAME_KEY);
		if (conf_name && *conf_name)
			options->conf_name = conf_name;
	}
}

/* Reads the options of Spark's program, up to the application's jar: arguments after it are not Spark's. */
static void read_options(struct spark_options *options, const char *at, const char *end)
{
	while (at < end && *at == '-') {
		const char *option = at, *equals = !strncmp(at, "--", 2) ? strchr(at, '=') : NULL;

		at += strlen(at) + 1;
		if (equals) {
			take_option(options, option, (size_t)(equals - option), equals + 1);
		} else if (!text_is_word(option, switches) && at < end) {
			take_option(options, option, strlen(option), at);
			at += strlen(at) + 1;
		}
	}
}

/* Returns the last -Dspark.app.name=, or NULL. Spark takes system properties as configuration, whatever starts it. */
static const char *property_name(const char *arguments, const char *program)
{
	const char *name = NULL, *value;

	for (const char *at = arguments; at < program; at += strlen(at) + 1) {
		value = value_of(at, "-D" NAME_KEY);
		if (value && *value)
			name = value;
	}
	return name;
}

void spark_from_arguments(const char *arguments, size_t len, struct spark *ret_spark)
{
	const char *program = application_find(arguments, len);
	struct spark spark = {0};
	struct spark_options options = {.spark = &spark};

	if (program && !strncmp(program, "org.apache.spark.", strlen("org.apache.spark."))) {
		spark.is_own = true;
		read_options(&options, program + strlen(program) + 1, arguments + len);
	}
	spark.name = options.name	 ? options.name
		     : options.conf_name ? options.conf_name
		     : program		 ? property_name(arguments, program)
					 : NULL;
	*ret_spark = spark;
}

/* The value of four hexadecimal digits, or -1. */
static int32_t unit_of(const char *at, const char *end)
{
	int32_t unit = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		if (!isxdigit((unsigned char)at[i]))
			return -1;
		unit = unit * 16 + (at[i] <= '9' ? at[i] - '0' : (at[i] | 0x20) - 'a' + 10);
	}
	return unit;
}

/* Appends the character after "\u", which is one unit of UTF-16 or a surrogate pair. Returns where it ends. */
static const char *add_unit(struct buf *out, const char *at, const char *end)
{
	int32_t unit = unit_of(at, end), low;

	if (unit <= 0)
		return at;
	at += 4;
	if (unit < 0xd800 || unit > 0xdfff) {
		text_add_utf8(out, unit);
		return at;
	}
	low = end - at > 2 && at[0] == '\\' && at[1] == 'u' ? unit_of(at + 2, end) : -1;
	if (unit > 0xdbff || low < 0xdc00 || low > 0xdfff) {
		buf_add_char(out, '?');
		return at;
	}
	text_add_utf8(out, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
	return at + 6;
}

static void add_value(struct buf *out, const char *at, const char *end)
{
	while (at < end) {
		char c = *at++;

		if (c == '\\' && at < end) {
			c = *at++;
			if (c == 'u') {
				at = add_unit(out, at, end);
				continue;
			}
			c = c == 't' || c == 'n' || c == 'r' || c == 'f' ? ' ' : c;
		}
		if (c)
			buf_add_char(out, c);
	}
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\f'))
		at++;
	return at;
}

/* Puts the value into `out` if the line has the name: "key=value", "key: value" or "key value"; all are in use. */
static void read_line(const char *at, const char *end, struct buf *out)
{
	const char *behind;

	at = skip_blanks(at, end);
	if ((size_t)(end - at) <= strlen(NAME_KEY) || memcmp(at, NAME_KEY, strlen(NAME_KEY)) != 0)
		return;
	at += strlen(NAME_KEY);
	behind = skip_blanks(at, end);
	if (behind < end && (*behind == '=' || *behind == ':'))
		behind = skip_blanks(behind + 1, end);
	if (behind == at) /* the key is longer */
		return;
	while (end > behind && isspace((unsigned char)end[-1]))
		end--;
	buf_clear(out);
	add_value(out, behind, end);
}

int spark_from_properties(const char *text, size_t len, struct buf *out)
{
	const char *end = text + len;
	BUF(name);

	for (const char *line_end; text < end; text = line_end + 1) {
		line_end = memchr(text, '\n', (size_t)(end - text));
		line_end = line_end ? line_end : end;
		read_line(text, line_end, &name); /* the last one counts */
	}
	buf_add(out, name.data, name.len);
	return name.len ? 0 : -ENOENT;
}
