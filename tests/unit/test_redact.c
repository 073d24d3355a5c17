/* SPDX-License-Identifier: MIT */
/* Secrets in command lines: forms that people use, and words that only look like them. */
#include "base/redact.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* clang-format off */
/* Arguments are separated by '|', of which none has one. `want` NULL: nothing is left out. */
static const struct {
	const char *arguments, *want;
} rows[] = {
	/* properties and options */
	{"-Dx.password=hunter2", "-Dx.password=[redacted]"},
	{"-Dx.password=two words", "-Dx.password=[redacted]"},
	{"-Djavax.net.ssl.keyStorePassword=hunter2", "-Djavax.net.ssl.keyStorePassword=[redacted]"},
	{"-Dtoken=a,b=c", "-Dtoken=[redacted]"},
	{"-Dkey=abc", "-Dkey=[redacted]"},
	{"-Dstripe.apiKey=abc", "-Dstripe.apiKey=[redacted]"},
	{"-Dsigning-key=abc", "-Dsigning-key=[redacted]"},
	{"-Ddb.pass=abc", "-Ddb.pass=[redacted]"},
	{"-Dsasl.jaas.config=org.x.Login required u=\"a\";", "-Dsasl.jaas.config=[redacted]"},
	{"--token|hunter2|--x", "--token [redacted] --x"},
	{"--token|two words|y", "--token [redacted] y"},
	{"--token|-hunter2|y", "--token [redacted] y"},
	{"--token=hunter2", "--token=[redacted]"},
	{"--password|--token|hunter2", "--password --token [redacted]"},
	{"--password|-h|host", NULL},
	{"--db-password|'hunter2'", "--db-password [redacted]"},
	{"-storepass|changeit|-keypass|changeit", "-storepass [redacted] -keypass [redacted]"},
	{"--api-key|abc|--client_secret|abc", "--api-key [redacted] --client_secret [redacted]"},
	{"--credentials|abc", "--credentials [redacted]"},
	{"-javaagent:a.jar=url=x,token=abc,mode=y", "-javaagent:a.jar=url=x,token=[redacted],mode=y"},
	{"-XX:OnError=x 'Authorization: Bearer abc' y", "-XX:OnError=x 'Authorization: Bearer [redacted] y"},
	/* programs */
	{"mysql|-uroot|-phunter2|shop", "mysql -uroot -p[redacted] shop"},
	{"/usr/bin/mysqldump|-phunter2", "/usr/bin/mysqldump -p[redacted]"},
	{"mariadb|-p|shop", NULL},
	{"sshpass|-p|hunter2|ssh|-p|22|host", "sshpass -p [redacted] ssh -p [redacted] host"},
	{"curl|-u|joe:hunter2|http://h/", "curl -u [redacted] http://h/"},
	{"curl|-ujoe:hunter2", "curl -u[redacted]"},
	{"curl|--user=joe:hunter2", "curl --user=[redacted]"},
	{"curl|-H|Authorization: Bearer abc", "curl -H Authorization: [redacted]"},
	{"curl|-H|X-Api-Key: abc", "curl -H X-Api-Key: [redacted]"},
	{"redis-cli|-a|hunter2", "redis-cli -a [redacted]"},
	{"ldapsearch|-w|hunter2", "ldapsearch -w [redacted]"},
	{"sh|-c|PASSWORD=hunter2 cmd -x", "sh -c PASSWORD=[redacted]"}, /* or a variable of env's that has blanks */
	{"sh|-c|cd x; PASSWORD=hunter2 cmd -x", "sh -c cd x; PASSWORD=[redacted] cmd -x"},
	{"sh|-c|mysql -phunter2 --token abc; y", "sh -c mysql -p[redacted] --token [redacted] y"},
	{"sh|-c|cmd --password \"two words\" y", "sh -c cmd --password [redacted] y"},
	/* variables */
	{"env|AWS_SECRET_ACCESS_KEY=abc|cmd", "env AWS_SECRET_ACCESS_KEY=[redacted] cmd"},
	{"docker|-e|DB_PASSWORD=abc|--env=TOKEN=abc", "docker -e DB_PASSWORD=[redacted] --env=TOKEN=[redacted]"},
	{"GITHUB_TOKEN=abc", "GITHUB_TOKEN=[redacted]"},
	/* addresses */
	{"https://joe:hunter2@host/x", "https://[redacted]@host/x"},
	{"https://joe:p/w@host/x", "https://[redacted]@host/x"},
	{"https://abc@github.com/x", "https://[redacted]@github.com/x"},
	{"-Ddb.url=jdbc:postgresql://u:p@h/db", "-Ddb.url=jdbc:postgresql://[redacted]@h/db"},
	{"jdbc:mysql://h/db?user=u&password=p&x=y", "jdbc:mysql://h/db?user=u&password=[redacted]&x=y"},
	{"jdbc:sqlserver://h;user=sa;password=p;x=y", "jdbc:sqlserver://h;user=sa;password=[redacted];x=y"},
	{"jdbc:oracle:thin:scott/tiger@h:1521/x", "jdbc:oracle:thin:[redacted]@h:1521/x"},
	{"mongodb://u:p@a,b/db", "mongodb://[redacted]@a,b/db"},
	{"amqp://u:p@h:5672/%2f", "amqp://[redacted]@h:5672/%2f"},
	{"https://h/x?access_token=abc&y=z", "https://h/x?access_token=[redacted]&y=z"},
	{"AccountName=x;AccountKey=abc==;y=z", "AccountName=x;AccountKey=[redacted];y=z"},
	/* what is a secret by itself, and JSON */
	{"--id|AKIAIOSFODNN7EXAMPLE", "--id [redacted]"},
	{"x=ghp_0123456789abcdefghijklmnopqrstuvwxyz", "x=[redacted]"},
	{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc", "[redacted]"},
	{"Bearer|abc", "Bearer [redacted]"},
	{"{\"password\":\"a,b\",\"x\":1}", "{\"password\":[redacted],\"x\":1}"},
	{"{\"password\": \"a b\", \"x\":1}", "{\"password\": [redacted], \"x\":1}"},
	{"{\\\"password\\\":\\\"abc\\\"}", "{\\\"password\\\":[redacted]}"},

	/* no secrets */
	{"-XX:+UseKeyword|-Xmx1g|-cp|/a/keycloak.jar:/b/token.jar:/c/secret/x.jar|com.acme.PasswordService", NULL},
	{"-Dkeyboard=us|-Dmonkey=1|-Ddonkey.file=x|-Dkeycloak.url=http://h:80/x|-Dkeyspace=x|-DkeyStore=/x", NULL},
	{"--primary-key|id|--primary-key=id|--sort-key|x|--publicKey=x|--partition.key=x", NULL},
	{"-Dkey.file=/path|-Dssl.key.path=/path|--key-file|/path", NULL},
	{"--tokenizer=x|--max-tokens|512|--author=joe|-Dauthority=x|--bypass=x", NULL},
	{"-Dpassword.required=true|--use-token=false|--no-password|app.jar|-Dtoken|Main", NULL},
	{"-p8080|-p|8080|ssh|-p|22|PWD=/home/joe|OLDPWD=/home|cat|mysql.txt", NULL},
	{"http://host:8080/a@b|https://h/@scope/x|git@github.com:a/b.git|http://[::1]:80/a@b|file:///a@b", NULL},
	{"--password-file", NULL},
	{"", NULL},
	{"-|--|-D|=|:|@|://|://@|\"|\\", NULL},
};
/* clang-format on */

#define ROWS (sizeof(rows) / sizeof(*rows))

static void words_of(const char *text, struct buf *out, char separator)
{
	for (; *text; text++)
		buf_add_char(out, *text == '|' ? separator : *text);
}

static void arguments(void **state)
{
	for (size_t i = 0; i < ROWS; i++) {
		BUF(words);
		BUF(plain);
		BUF(out);

		words_of(rows[i].arguments, &words, '\0');
		words_of(rows[i].arguments, &plain, ' ');
		redact_arguments(words.data, words.len, &out);
		assert_string_equal(out.data, rows[i].want ? rows[i].want : plain.data);
	}
}

/* Of a text it is not known where arguments end. What has no blanks in it is found all the same. */
static void texts(void **state)
{
	for (size_t i = 0; i < ROWS; i++) {
		BUF(plain);
		BUF(out);

		if (strchr(rows[i].arguments, ' '))
			continue;
		words_of(rows[i].arguments, &plain, ' ');
		redact_text(plain.data, plain.len, &out);
		assert_string_equal(out.data, rows[i].want ? rows[i].want : plain.data);
	}
}

static void twice_is_once(void **state)
{
	for (size_t i = 0; i < ROWS; i++) {
		BUF(out);

		if (!rows[i].want)
			continue;
		redact_text(rows[i].want, strlen(rows[i].want), &out);
		assert_string_equal(out.data, rows[i].want);
	}
}

static void values(void **state)
{
	static const struct {
		const char *name, *value, *want;
	} pairs[] = {
		{"db.password", "two words", "[redacted]"},
		{"ACCESS_TOKEN", "abc", "[redacted]"},
		{"http.auth", "abc", "[redacted]"},
		{"db.url", "jdbc:postgresql://u:p@h/db", "jdbc:postgresql://[redacted]@h/db"},
		{"JAVA_TOOL_OPTIONS", "-Xmx1g -Dtoken=abc", "-Xmx1g -Dtoken=[redacted]"},
		{"java.class.path", "/a/keycloak.jar:/b", "/a/keycloak.jar:/b"},
		{"token", "", ""},
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		BUF(out);

		redact_value(pairs[i].name, strlen(pairs[i].name), pairs[i].value, &out);
		assert_string_equal(out.data, pairs[i].want);
	}
}

static void kept_when_off(void **state)
{
	BUF(out);

	redact_set(false);
	redact_arguments("--token\0abc", 11, &out);
	redact_text(" --token=abc", 12, &out);
	redact_value("token", 5, "x", &out);
	redact_set(true);
	assert_string_equal(out.data, "--token abc --token=abcx");
}

/* A process may have any bytes as its arguments: no byte after them is read, and the time grows with them alone. */
static void hostile_arguments(void **state)
{
	static const char *const units[] = {"\"",	    "'",	"\\",	      "://",	  "=",
					    "token=",	    "token=\"", "\"token\":", "-",	  "j",
					    "jdbc:oracle:", "a:",	"://a:b/",    "A",	  "\377",
					    "eyJ",	    "mysql ",	"Bearer ",    "token=a,", "--token "};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		BUF(text);
		BUF(out);
		char *exact;

		while (text.len < 1u << 18)
			buf_add_str(&text, units[i]);
		exact = buf_duplicate(text.data, text.len);
		redact_arguments(exact, text.len, &out);
		redact_text(exact, text.len, &out);
		assert_false(out.failed);
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments), cmocka_unit_test(texts),	      cmocka_unit_test(twice_is_once),
		cmocka_unit_test(values),    cmocka_unit_test(kept_when_off), cmocka_unit_test(hostile_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
