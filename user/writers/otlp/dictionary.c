/* SPDX-License-Identifier: MIT */
#include "writers/otlp/dictionary.h"

#include <errno.h>

#include "otlp.pb-c.h"
#include "writers/otlp/protobuf_json.h"

void otlp_dictionary_init(struct otlp_dictionary *dictionary)
{
	for (unsigned int table = TABLE_MAPPINGS; table <= TABLE_STACKS; table++) {
		buf_init(&dictionary->tables[table]);
		add_bytes(&dictionary->tables[table], table, "", 0);
	}
}

void otlp_dictionary_release(struct otlp_dictionary *dictionary)
{
	for (unsigned int table = TABLE_MAPPINGS; table <= TABLE_STACKS; table++)
		buf_release(&dictionary->tables[table]);
}

static bool is_whole(const struct otlp_dictionary *dictionary)
{
	for (unsigned int table = TABLE_MAPPINGS; table <= TABLE_STACKS; table++)
		if (dictionary->tables[table].failed)
			return false;
	return true;
}

int otlp_dictionary_write(const struct otlp_dictionary *dictionary, unsigned int field, FILE *out)
{
	uint64_t bytes = 0;

	if (!is_whole(dictionary))
		return -ENOMEM;
	for (unsigned int table = TABLE_MAPPINGS; table <= TABLE_STACKS; table++)
		bytes += dictionary->tables[table].len;
	write_head(out, field, bytes);
	for (unsigned int table = TABLE_MAPPINGS; table <= TABLE_STACKS; table++)
		fwrite(dictionary->tables[table].data, 1, dictionary->tables[table].len, out);
	return 0;
}

int otlp_dictionary_write_json(const struct otlp_dictionary *dictionary, FILE *out)
{
	int err = is_whole(dictionary) ? 0 : -ENOMEM;

	for (unsigned int table = TABLE_MAPPINGS; !err && table <= TABLE_STACKS; table++) {
		const struct buf *packed = &dictionary->tables[table];

		fputc(table == TABLE_MAPPINGS ? '{' : ',', out);
		err = protobuf_json_elements(out, &otlp__dictionary__descriptor, table, packed->data, packed->len);
	}
	fputc('}', out);
	return err;
}
