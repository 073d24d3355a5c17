/* SPDX-License-Identifier: MIT */
#include "attach/vm_options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/hsperfdata.h"
#include "base/io.h"
#include "base/root.h"
#include "base/text.h"

#define WORD_MAX 4096
#define COMMAND_MAX (1u << 20)
#define ENVIRON_MAX (1u << 20)
#define FILE_MAX (64u << 10)
#define FILES_MAX 16

/* Applies one flag with its sign, as in -XX:+Flag or a line of a -XX:Flags= file. */
static void apply_flag(struct vm_options *options, const char *flag)
{
	bool on = flag[0] == '+';

	if (strcmp(flag + 1, "DisableAttachMechanism") == 0)
		options->attach_disabled = on;
	else if (strcmp(flag + 1, "ReduceSignalUsage") == 0)
		options->reduced_signals = on;
	else if (strcmp(flag + 1, "EnableDynamicAgentLoading") == 0)
		options->agents_enabled = on;
}

bool vm_options_warn_of_agents(const struct vm_options *options)
{
	return !options->agents_enabled && (!options->jdk || options->jdk >= 21);
}

static void add_file(struct buf *files, const char *path)
{
	if (files && *path) {
		buf_add_str(files, path);
		buf_add_char(files, '\n');
	}
}

static void apply(struct vm_options *options, const char *word, struct buf *files)
{
	if (strcmp(word, "-Xrs") == 0)
		options->reduced_signals = true;
	else if (text_begins_with(word, "-XX:+ -XX:-"))
		apply_flag(options, word + strlen("-XX:"));
	else if (word[0] == '+' || (word[0] == '-' && strcmp(word, "-DisableAttachMechanism") == 0))
		apply_flag(options, word);
	else if (word[0] == '@')
		add_file(files, word + 1);
	else if (text_begins_with(word, "-XX:Flags= -XX:VMOptionsFile="))
		add_file(files, strchr(word, '=') + 1);
}

/* True for the launcher's options whose value is the next word. Not for -jar and -m: theirs is the program. */
static bool takes_value(const char *word)
{
	return text_is_word(word, "-cp -classpath --class-path -p --module-path --upgrade-module-path --add-modules "
				  "--limit-modules --add-reads --add-exports --add-opens --patch-module "
				  "--enable-native-access --source");
}

static bool is_option(const char *word)
{
	return (word[0] == '-' || word[0] == '@') && !text_is_word(word, "-jar -m --module");
}

void vm_options_parse_command(struct vm_options *options, const char *bytes, size_t len, struct buf *files)
{
	const char *end = bytes + len, *word = memchr(bytes, '\0', len); /* word 0 is the program */
	bool value = false;

	while (word && ++word < end && memchr(word, '\0', end - word)) {
		if (!value && !is_option(word))
			return;
		if (!value)
			apply(options, word, files);
		value = !value && takes_value(word);
		word += strlen(word);
	}
}

/* Copies the next word without its quotes. Returns the rest of the text, or NULL at the end. */
static const char *next_word(const char *text, char *word, size_t size)
{
	char quote = '\0';
	size_t len = 0;

	text += strspn(text, " \t\r\n\f");
	if (!*text)
		return NULL;
	for (; *text && (quote || !strchr(" \t\r\n\f", *text)); text++) {
		if (*text == quote)
			quote = '\0';
		else if (!quote && (*text == '"' || *text == '\''))
			quote = *text;
		else if (len + 1 < size)
			word[len++] = *text;
	}
	word[len] = '\0';
	return text;
}

void vm_options_parse_text(struct vm_options *options, const char *text, struct buf *files)
{
	char word[WORD_MAX];

	while ((text = next_word(text, word, sizeof(word))))
		apply(options, word, files);
}

/* Reads the option files, not the files that these name: neither HotSpot's nor the launcher's @files nest. */
static void read_files(struct vm_options *options, const struct visit *visit, char *list)
{
	char *path, *rest = list;
	BUF(text);

	for (int i = 0; i < FILES_MAX && (path = strsep(&rest, "\n")) && *path; i++) {
		buf_clear(&text);
		root_read(path[0] == '/' ? visit->root : visit->cwd, path, (uid_t)-1, FILE_MAX, &text);
		vm_options_parse_text(options, text.data, NULL);
	}
}

static const char *environment(const struct buf *variables, const char *name)
{
	const char *end = variables->data + variables->len;
	size_t len = strlen(name);

	for (const char *item = variables->data; item < end; item += strlen(item) + 1)
		if (strncmp(item, name, len) == 0 && item[len] == '=')
			return item + len + 1;
	return "";
}

void vm_words_read(struct vm_words *words, const struct visit *visit)
{
	buf_init(&words->variables);
	buf_init(&words->command);
	io_read_file(visit->proc, "environ", ENVIRON_MAX, &words->variables);
	io_read_file(visit->proc, "cmdline", COMMAND_MAX, &words->command);
}

void vm_words_release(struct vm_words *words)
{
	buf_release(&words->variables);
	buf_release(&words->command);
}

void vm_options_read(struct vm_options *options, const struct vm_words *words, const struct visit *visit)
{
	const struct buf *variables = &words->variables;
	BUF(files);

	vm_options_parse_text(options, environment(variables, "JAVA_TOOL_OPTIONS"), &files);
	vm_options_parse_text(options, environment(variables, "JDK_JAVA_OPTIONS"), &files);
	vm_options_parse_command(options, words->command.data, words->command.len, &files);
	read_files(options, visit, files.data);
	vm_options_parse_text(options, environment(variables, "_JAVA_OPTIONS"), NULL);
}

/* JDK 8 and earlier report "1.8", later ones "9" and up. */
static int parse_version(const char *text)
{
	return atoi(text_begins_with(text, "1.") ? text + 2 : text);
}

void vm_options_read_hsperfdata(struct vm_options *options, const struct visit *visit)
{
	static const char *const sources[] = {"java.rt.vmFlags", "java.rt.vmArgs"};
	char value[WORD_MAX];
	BUF(bytes);

	if (hsperfdata_read(visit->root, visit->target->ns_pid, geteuid(), &bytes) < 0)
		return;
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		if (hsperfdata_string(bytes.data, bytes.len, sources[i], value, sizeof(value)) == 0)
			vm_options_parse_text(options, value, NULL);
	if (hsperfdata_string(bytes.data, bytes.len, "java.property.java.vm.specification.version", value,
			      sizeof(value)) == 0)
		options->jdk = parse_version(value);
}
