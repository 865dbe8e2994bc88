/* media_fixture.h -- shards of small JPEGs for the loader's tests.
 * Owns: nothing beyond loader_fixture.h.   Threads: one.   Errors: a failed assertion.
 * Not here: the tests. */
#ifndef TESTS_MEDIA_FIXTURE_H
#define TESTS_MEDIA_FIXTURE_H

#include "loader_fixture.h"

#include "../codec/jpeg_making.h"

/* What is wrong with the image of one sample. */
enum flaw { FLAW_NONE, FLAW_CUT, FLAW_EMPTY, FLAW_HTML };

struct image_set {
    uint32_t shards, each;
    int width, height;
    int grows;                          /* widths differ: width + number % 5 */
    const char *mode;                   /* gzopen's: "wbT" is plain, "wb" compressed */
    enum flaw (*flaw)(uint32_t number); /* NULL: none */
};

static inline struct stk_bytes fixture_image(const struct image_set *set, uint32_t number)
{
    struct jpeg_recipe recipe = {.width = set->width, .height = set->height};
    recipe.width += set->grows ? (int)(number % 5) : 0;
    recipe.quality = 50 + (int)(number % 40); /* so that no two are alike */
    return jpeg_made(&recipe);
}

static inline void fixture_image_member(gzFile file, const struct image_set *set, uint32_t number)
{
    static const char page[] = "<html><head><title>403 Forbidden</title></head></html>";
    struct stk_bytes image = fixture_image(set, number);
    enum flaw flaw = set->flaw ? set->flaw(number) : FLAW_NONE;
    char name[64], text[32];
    snprintf(name, sizeof name, "%06u.jpg", number);
    if (flaw == FLAW_HTML)
        fixture_member(file, name, page, sizeof page);
    else
        fixture_member(file, name, image.data,
                       flaw == FLAW_CUT     ? image.len / 2
                       : flaw == FLAW_EMPTY ? 0
                                            : image.len);
    snprintf(name, sizeof name, "%06u.cls", number);
    snprintf(text, sizeof text, "%u", number % 10);
    fixture_member(file, name, text, strlen(text));
    free((void *)(uintptr_t)image.data);
}

/* KEY.jpg and KEY.cls (the number modulo 10). */
static inline void fixture_images(struct fixture *fixture, const struct image_set *set)
{
    char path[256], name[64], zeros[1024] = {0};
    const char *mode = set->mode ? set->mode : "wbT";
    fixture_folder(fixture);
    for (uint32_t s = 0; s < set->shards; s++) {
        snprintf(name, sizeof name, "shard-%04u.tar%s", s, strchr(mode, 'T') ? "" : ".gz");
        fixture_path(fixture, name, path, sizeof path);
        gzFile file = gzopen(path, mode);
        assert_non_null(file);
        for (uint32_t i = s * set->each; i < (s + 1) * set->each; i++)
            fixture_image_member(file, set, i);
        gzwrite(file, zeros, 1024);
        gzclose(file);
    }
    fixture_open(fixture, "", NULL);
}

/* The digest of what is left of the epoch. */
static inline void fixture_digest(struct stk_loader *loader, char out[33])
{
    struct stk_digest digest;
    struct stk_batch *batch;
    stk_digest_init(&digest);
    while ((batch = fixture_next(loader)) != NULL) {
        assert_int_equal(stk_digest_add(&digest, batch, NULL), STK_OK);
        stk_batch_release(batch);
    }
    stk_digest_text(&digest, out);
}

#endif
