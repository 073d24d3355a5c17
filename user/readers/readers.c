/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/map.h"
#include "base/redact.h"
#include "profile/attributes.h"
#include "readers/limits.h"
#include "readers/reader.h"

#define ROW(name) &reader_##name,
const struct reader *const readers[] = {READERS(ROW) NULL};

#define PIECE ((size_t)1 << 20) /* of the bytes that reader_append() reads */

/* ---- files that were compressed with gzip ---- */

#define CHUNK 65536
#define WINDOW_OF_GZIP (15 + 16) /* the largest, with gzip's header */
/* A small file must not cost much. Recordings become 3 to 20 times as long. */
#define FREE_BYTES (64u << 20)
#define TIMES_MAX 200
/* The same of what is held in memory whole, which is text less often. */
#define HELD_FREE ((size_t)16 << 20)
#define HELD_TIMES 40

struct gunzip {
	z_stream z;
	int fd;
	uint64_t in_bytes, out_bytes; /* so far */
	bool is_between; /* between two members of the file, where it may end */
	unsigned char chunk[CHUNK];
};

/* `start` are the bytes that were already read from `fd`, which is not owned. Returns NULL when out of memory. */
static struct gunzip *gunzip_open(int fd, const unsigned char *start, size_t len)
{
	struct gunzip *gunzip = len <= CHUNK ? calloc(1, sizeof(*gunzip)) : NULL;

	if (!gunzip)
		return NULL;
	gunzip->fd = fd;
	gunzip->in_bytes = len;
	memcpy(gunzip->chunk, start, len);
	gunzip->z.next_in = gunzip->chunk;
	gunzip->z.avail_in = (uInt)len;
	if (inflateInit2(&gunzip->z, WINDOW_OF_GZIP) == Z_OK)
		return gunzip;
	free(gunzip);
	return NULL;
}

static void gunzip_close(struct gunzip *gunzip)
{
	if (!gunzip)
		return;
	inflateEnd(&gunzip->z);
	free(gunzip);
}

/* Returns 1, 0 at the end of the file, or -errno. */
static int fill(struct gunzip *gunzip)
{
	ssize_t got;

	if (gunzip->z.avail_in)
		return 1;
	do
		got = read(gunzip->fd, gunzip->chunk, CHUNK);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	if (!got)
		return gunzip->is_between ? 0 : -EILSEQ;
	gunzip->z.next_in = gunzip->chunk;
	gunzip->z.avail_in = (uInt)got;
	gunzip->in_bytes += (uint64_t)got;
	return 1;
}

static int inflate_more(struct gunzip *gunzip)
{
	int code = inflate(&gunzip->z, Z_NO_FLUSH);

	gunzip->is_between = code == Z_STREAM_END;
	if (code == Z_STREAM_END)
		return inflateReset(&gunzip->z) == Z_OK ? 0 : -ENOMEM;
	return code == Z_OK || code == Z_BUF_ERROR ? 0 : -EILSEQ;
}

/* Returns the number of bytes, 0 at the end, or -errno: -EILSEQ if the file is damaged or ends too early. */
static ssize_t gunzip_read(struct gunzip *gunzip, void *bytes, size_t len)
{
	int more = 1;

	gunzip->z.next_out = bytes;
	gunzip->z.avail_out = len < CHUNK * 1024u ? (uInt)len : CHUNK * 1024u;
	while (gunzip->z.avail_out && (more = fill(gunzip)) > 0) {
		int err = inflate_more(gunzip);

		if (err)
			return err;
	}
	if (more < 0)
		return more;
	len = (size_t)((unsigned char *)gunzip->z.next_out - (unsigned char *)bytes);
	gunzip->out_bytes += len;
	if (gunzip->out_bytes > FREE_BYTES && gunzip->out_bytes / TIMES_MAX > gunzip->in_bytes)
		return -EILSEQ;
	return (ssize_t)len;
}

/* Reads until `len` bytes are there or the file ends. */
static ssize_t read_whole(const struct reader_source *source, unsigned char *bytes, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t more = source->gunzip ? gunzip_read(source->gunzip, bytes + got, len - got)
					      : read(source->fd, bytes + got, len - got);

		if (more < 0 && source->gunzip)
			return more;
		if (more < 0 && errno == EINTR)
			continue;
		if (more < 0)
			return -errno;
		if (!more)
			break;
		got += (size_t)more;
	}
	return (ssize_t)got;
}

int reader_open_file(const char *path)
{
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISDIR(st.st_mode))
		return fd;
	close(fd);
	return -EISDIR;
}

/* If the file is compressed, the source becomes that of its contents. Returns how long its beginning is, or -errno. */
static ssize_t decompress(struct reader_source *source, size_t len)
{
	if (len < 2 || source->start[0] != 0x1f || source->start[1] != 0x8b)
		return (ssize_t)len;
	source->gunzip = gunzip_open(source->fd, source->start, len);
	return source->gunzip ? read_whole(source, source->start, sizeof(source->start)) : -ENOMEM;
}

static void explain_damage(struct buf *why)
{
	buf_add_str(why, "the compressed data are damaged or end too early");
}

int reader_begin(struct reader_source *source, const char *name, int fd, struct buf *why)
{
	ssize_t got;

	if (fd < 0)
		return buf_explain(why, fd, "cannot be read: %s", strerror(-fd));
	*source = (struct reader_source){.name = name, .fd = fd};
	buf_init(&source->warning);
	got = read_whole(source, source->start, sizeof(source->start));
	if (got >= 0)
		got = decompress(source, (size_t)got);
	if (got >= 0) {
		source->start_len = (size_t)got;
		return 0;
	}
	if (got == -EILSEQ && source->gunzip)
		explain_damage(why);
	else
		buf_printf(why, "cannot be read: %s", strerror((int)-got));
	reader_close(source);
	return (int)got;
}

void reader_close(struct reader_source *source)
{
	gunzip_close(source->gunzip);
	close(source->fd);
	buf_release(&source->warning);
}

ssize_t reader_bytes(struct reader_source *source, void *bytes, size_t len)
{
	size_t ready = 0;
	ssize_t got;

	if (source->offset < source->start_len) {
		ready = source->start_len - (size_t)source->offset;
		ready = ready < len ? ready : len;
		memcpy(bytes, source->start + source->offset, ready);
	}
	got = read_whole(source, (unsigned char *)bytes + ready, len - ready);
	if (got < 0)
		return got;
	source->offset += ready + (size_t)got;
	if (source->profile)
		limits_set(source);
	return (ssize_t)ready + got;
}

int reader_append(struct reader_source *source, size_t len, struct buf *to)
{
	while (len) {
		size_t piece = len < PIECE ? len : PIECE;
		ssize_t got = buf_reserve(to, piece) ? reader_bytes(source, to->data + to->len, piece) : -ENOMEM;

		if (got < 0)
			return (int)got;
		to->len += (size_t)got;
		to->data[to->len] = '\0';
		len -= (size_t)got;
		if (source->gunzip && to->len > HELD_FREE && to->len / HELD_TIMES > source->gunzip->in_bytes)
			return -EFBIG;
		if ((size_t)got < piece)
			return 0;
	}
	return 1;
}

int reader_contents(struct reader_source *source, size_t max, struct buf *to, struct buf *why)
{
	int got = reader_append(source, max + 1, to);

	if (got <= 0)
		return got;
	return buf_explain(why, -EFBIG, "the contents have more than %zu MB", max >> 20);
}

uint64_t reader_stored_bytes(const struct reader_source *source)
{
	return source->gunzip ? source->gunzip->in_bytes : source->offset;
}

int reader_add(struct profile *profile, struct profile_sample sample, uint64_t count)
{
	uint64_t weight = sample.weight;
	int err = 0;

	while (count && !err) {
		sample.count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
		sample.weight = sample.count == count ? weight : weight / count * sample.count;
		err = profile_add(profile, &sample);
		count -= sample.count;
		weight -= sample.weight;
	}
	return err;
}

bool reader_is_text(const unsigned char *start, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (start[i] < ' ' && !memchr("\t\n\r\f", start[i], 4))
			return false;
	return true;
}

/* Says what a file is that no reader claims. */
static void explain_start(const unsigned char *start, size_t len, struct buf *why)
{
	static const struct {
		const char *name, *unpack;
		unsigned char magic[4];
		size_t len;
	} others[] = {
		{"zstd", "zstd -d", {0x28, 0xb5, 0x2f, 0xfd}, 4},
		{"xz", "xz -d", {0xfd, '7', 'z', 'X'}, 4},
		{"bzip2", "bzip2 -d", {'B', 'Z', 'h'}, 3},
		{"lz4", "lz4 -d", {0x04, 0x22, 0x4d, 0x18}, 4},
		{"zip", "unzip", {'P', 'K', 3, 4}, 4},
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (len >= others[i].len && !memcmp(start, others[i].magic, others[i].len))
			return buf_printf(why, "compressed with %s, not gzip: unpack it first (%s)", others[i].name,
					  others[i].unpack);
	buf_add_str(why, len ? "not a profile in a format that duet reads" : "the file is empty");
	if (len && reader_is_text(start, len))
		buf_add_str(why, "; of texts, these are collapsed stacks and perf script's, with addresses or events "
				 "(perf script -F ip,sym)");
}

static void explain_error(const struct reader_source *source, int err, struct buf *why)
{
	if (err == -EILSEQ && source->gunzip)
		explain_damage(why);
	else if (err == -EFBIG && source->gunzip)
		buf_printf(why, "unpacked, it is more than %d times as long: unpack it first", HELD_TIMES);
	else if (err == -EOVERFLOW)
		buf_add_str(why, "the values of the samples are too large");
	else
		buf_add_str(why, err == -ENOMEM ? "out of memory" : strerror(-err));
}

/* Leaves secrets out of the text. `name`: of what it is the value; 0: it is a command line. */
static void redact_one(struct profile *profile, struct map *known, uint32_t name, uint32_t *text)
{
	const char *key = profile_text(profile, name);
	uint64_t about = (uint64_t)name << 32 | *text, id;
	BUF(shown);

	if (!map_get(known, about, &id)) {
		redact_value(key, strlen(key), profile_text(profile, *text), &shown);
		id = shown.failed ? 0 : intern_bytes(&profile->strings, shown.data, shown.len);
		(void)map_put(known, about, id); /* out of memory: it is looked at again */
	}
	*text = (uint32_t)id;
}

static void redact_attributes(struct profile *profile, uint32_t *text)
{
	BUF(shown);

	attributes_redact(profile_text(profile, *text), &shown);
	*text = shown.failed ? 0 : intern_bytes(&profile->strings, shown.data, shown.len);
}

/* Samples that are made again. */
struct redaction {
	struct profile *profile;
	struct timeline kept;
	struct map known; /* attributes -> those without secrets */
};

static int redact_sample(void *context, const struct profile_sample *sample)
{
	struct redaction *redaction = context;
	struct profile_sample shown = *sample;
	uint64_t known = sample->attributes;

	if (known && !map_get(&redaction->known, sample->attributes, &known)) {
		redact_attributes(redaction->profile, &shown.attributes);
		known = shown.attributes;
		(void)map_put(&redaction->known, sample->attributes, known); /* as above */
	}
	shown.attributes = (uint32_t)known;
	return timeline_add(&redaction->kept, &shown);
}

static int redact_samples(struct profile *profile)
{
	struct redaction redaction = {.profile = profile};
	int err = 0;

	if (profile->has_attributes)
		err = timeline_remake(&profile->samples, &redaction.kept, redact_sample, &redaction);
	map_release(&redaction.known);
	return err;
}

/* The file may be of another program or of an older duet, or secrets were kept in it. */
static int redact(struct profile *profile)
{
	struct map known = {0};

	for (size_t i = 0; i < profile->facts.len; i++)
		redact_one(profile, &known, 0, &profile->facts.items[i].value);
	for (size_t i = 0; i < profile->usages.len; i++)
		redact_one(profile, &known, 0, &profile->usages.items[i].command);
	for (size_t i = 0; i < profile->owners.len; i++)
		redact_attributes(profile, &profile->owners.items[i].attributes);
	for (size_t i = 0; i < profile->notes.len; i++) {
		struct profile_note *note = &profile->notes.items[i];
		bool is_command = note->kind == PROFILE_NOTE_COMMAND;

		if (is_command)
			redact_one(profile, &known, 0, &note->texts[0]);
		if (is_command || note->kind == PROFILE_NOTE_PROPERTY)
			redact_one(profile, &known, is_command ? 0 : note->texts[0], &note->texts[1]);
	}
	map_release(&known);
	return redact_samples(profile);
}

int reader_read_as(const struct reader *reader, struct reader_source *source, struct profile *profile, struct buf *why)
{
	int err;

	source->profile = profile;
	limits_set(source);
	err = reader->read(profile, source, why);
	source->profile = NULL;
	if (err == -ENOMEM && profile->nodes.len >= profile->most_nodes)
		err = buf_explain(why, -EFBIG, "its stacks have more than %zu frames, too many for so short a file",
				  profile->nodes.len - 1);
	if (!err)
		err = limits_check(source, profile, why);
	profile->strings.most = profile->most_nodes = 0;
	if (!err) {
		map_release(&profile->node_ids); /* it gets no more stacks; they take most of the memory */
		err = redact(profile);
	}
	if (err == -EILSEQ && source->gunzip)
		buf_clear(why);
	if (err < 0 && !why->len)
		explain_error(source, err, why);
	return err;
}

int reader_read(struct reader_source *source, struct profile *profile, struct buf *why)
{
	for (size_t i = 0; readers[i]; i++)
		if (readers[i]->claims(source->start, source->start_len))
			return reader_read_as(readers[i], source, profile, why);
	explain_start(source->start, source->start_len, why);
	return -EINVAL;
}
