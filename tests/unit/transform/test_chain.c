/* The text of a chain: what is understood, what is refused, and how it is written back. */
#include "base/testing.h"

#include "transform/chain.h"

static void text_becomes(const char *text, const char *canonical)
{
    struct chain chain;
    struct stk_error err;
    char out[512];
    stk_status status = chain_parse(&chain, text, NULL, &err);
    if (status)
        print_error("%s: %s\n", text, err.what);
    assert_int_equal(status, STK_OK);
    chain_text(&chain, out, sizeof out);
    assert_string_equal(out, canonical);
    chain_reset(&chain);
}

static void text_is_refused(const char *text, const char *words)
{
    struct chain chain;
    struct stk_error err;
    assert_int_equal(chain_parse(&chain, text, NULL, &err), STK_USAGE);
    int told = strstr(err.what, words) || strstr(err.remedy, words);
    if (!told)
        print_error("%s: \"%s\" / \"%s\" do not say \"%s\"\n", text, err.what, err.remedy, words);
    assert_true(told);
    assert_int_equal(chain.count, 0);
}

static void a_chain_is_written_back_as_it_was_meant(void **state)
{
    (void)state;
    text_becomes("", "");
    text_becomes("  Grayscale  ", "Grayscale");
    text_becomes("Grayscale()|Grayscale(3)", "Grayscale | Grayscale(3)");
    text_becomes("Grayscale(num_output_channels=3)", "Grayscale(3)");
    text_becomes("Grayscale(1)", "Grayscale");
    text_becomes("ColorJitter(0.4, [0.5, 1.5],\n hue = .1)",
                 "ColorJitter(0.4, (0.5, 1.5), hue=0.1)");
    text_becomes("RandomRotation(30, \"bilinear\", fill=(1,2,3,))",
                 "RandomRotation(30, 'bilinear', fill=(1, 2, 3))");
    text_becomes("RandomRotation((-1e1, 10), interpolation='nearest')",
                 "RandomRotation((-10, 10))");
    text_becomes("RandomErasing(value=random)", "RandomErasing(value='random')");
}

/* As torchvision has them, with one text for each meaning. */
static void words_of_torchvision_are_taken(void **state)
{
    (void)state;
    text_becomes("RandomCrop(32, 4, True, 0, 'reflect')",
                 "RandomCrop(32, 4, True, padding_mode='reflect')");
    text_becomes("RandomRotation(30, nearest, True, None, 7)",
                 "RandomRotation(30, expand=True, fill=7)");
    text_becomes("RandomRotation(30, center=(1.5, 2))", "RandomRotation(30, center=(1.5, 2))");
    text_becomes("Resize(None, max_size=9)", "Resize(max_size=9)");
    text_becomes("Resize(9, interpolation=box)", "Resize(9, 'area')");
    text_becomes("RandomResizedCrop(9, interpolation=nearest-exact)",
                 "RandomResizedCrop(9, interpolation='nearest')");
    text_becomes("ColorJitter(None, hue=None) | Pad(1, None)", "ColorJitter | Pad(1)");
    text_becomes("RandomErasing(inplace=True) | Normalize(0.5, 0.25, True)",
                 "RandomErasing | Normalize(0.5, 0.25)");
    text_becomes("TrivialAugmentWide(fill=None)", "TrivialAugmentWide");
    text_becomes("MixUp(classes=5) | CutMix(alpha=2, num_classes=5, labels_getter=default)",
                 "MixUp(num_classes=5) | CutMix(2, 5)");
    text_becomes("MixUp(num_classes=5, labels_getter='cls')", "MixUp(num_classes=5, label='cls')");
    text_is_refused("MixUp(num_classes=5, classes=5)", "num_classes and classes are one");
    text_is_refused("MixUp(num_classes=5, label=a, labels_getter=b)", "give one of them");
    text_is_refused("RandomRotation(30, expand=True, center=(1, 2))", "leave center out");
    text_is_refused("RandomErasing(value=None)", "value cannot be None");
    text_is_refused("Resize(interpolation=area)", "Resize needs size");
    text_is_refused("Resize((4, 5), max_size=9)", "a size of one number");
}

static void names_of_torchvision_that_are_none_here_tell_what_to_write(void **state)
{
    (void)state;
    text_is_refused("ToTensor", "there is no transform \"ToTensor\"");
    text_is_refused("Resize(4) | ToTensor()", "write Cast('float32', scale=True) | Layout('CHW')");
    text_is_refused("ToDtype(float32, True)", "write Cast(");
}

static void writing_it_back_twice_changes_nothing(void **state)
{
    (void)state;
    text_becomes("RandomErasing(p=0.25, value='random') | GaussianBlur((5, 3), sigma=1.5)",
                 "RandomErasing(0.25, value='random') | GaussianBlur((5, 3), 1.5)");
    text_becomes("RandomErasing(0.25, value='random') | GaussianBlur((5, 3), 1.5)",
                 "RandomErasing(0.25, value='random') | GaussianBlur((5, 3), 1.5)");
    text_becomes("MixUp(1, 5, \"it's\")", "MixUp(num_classes=5, image=\"it's\")");
    text_becomes("MixUp(num_classes=5, image=\"it's\")", "MixUp(num_classes=5, image=\"it's\")");
}

static void a_misspelt_name_is_told_with_the_nearest_one(void **state)
{
    (void)state;
    text_is_refused("Greyscale", "did you mean \"Grayscale\"?");
    text_is_refused("grayscale", "did you mean \"Grayscale\"?");
    text_is_refused("Blurry(3)", "there is no transform \"Blurry\"");
}

static void a_bad_argument_is_told_by_its_name(void **state)
{
    (void)state;
    text_is_refused("Grayscale(channels=3)", "its arguments: num_output_channels");
    text_is_refused("Grayscale(1.5)", "num_output_channels must be a whole number");
    text_is_refused("Grayscale(4)", "num_output_channels is 4");
    text_is_refused("Grayscale(2)", "1 or 3 channels");
    text_is_refused("Grayscale(None)", "num_output_channels cannot be None");
    text_is_refused("Grayscale(1, 1)", "takes 1 arguments at most");
    text_is_refused("GaussianBlur", "GaussianBlur needs kernel_size");
    text_is_refused("GaussianBlur(4)", "must be odd");
    text_is_refused("GaussianBlur(3, kernel_size=3)", "kernel_size is given twice");
    text_is_refused("GaussianBlur(sigma=1, 3)", "without a name behind one with a name");
    text_is_refused("RandomRotation(30, cubic)", "one of nearest|bilinear");
    text_is_refused("ColorJitter((1, 2, 3))", "brightness has 3 numbers");
    text_is_refused("ColorJitter(hue=0.7)", "hue is 0.7");
}

static void broken_text_is_told_with_its_place(void **state)
{
    (void)state;
    text_is_refused("Grayscale |", "a transform is expected behind '|' (at character 12");
    text_is_refused("| Grayscale", "a transform's name is expected (at character 1 ");
    text_is_refused("Grayscale Grayscale", "a '|' is expected between transforms (at character 11");
    text_is_refused("Grayscale(1", "a ',' or a ')' is expected");
    text_is_refused("Grayscale(", "a value is missing");
    text_is_refused("ColorJitter((1, 2)", "a ',' or a ')' is expected");
    text_is_refused("ColorJitter((1, 2", "a list holds numbers");
    text_is_refused("RandomRotation(30, 'near)", "a quote that does not end");
    text_is_refused("RandomRotation(1e999)", "degrees must be a number");
    text_is_refused("RandomRotation(nan)", "degrees must be a number");
}

static void a_chain_of_too_many_steps_is_refused(void **state)
{
    (void)state;
    char text[2048] = "Grayscale";
    struct chain chain;
    for (int i = 0; i < CHAIN_MAX_STEPS; i++)
        strcat(text, "|Grayscale");
    assert_int_equal(chain_parse(&chain, text, NULL, NULL), STK_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_is_written_back_as_it_was_meant),
        cmocka_unit_test(words_of_torchvision_are_taken),
        cmocka_unit_test(names_of_torchvision_that_are_none_here_tell_what_to_write),
        cmocka_unit_test(writing_it_back_twice_changes_nothing),
        cmocka_unit_test(a_misspelt_name_is_told_with_the_nearest_one),
        cmocka_unit_test(a_bad_argument_is_told_by_its_name),
        cmocka_unit_test(broken_text_is_told_with_its_place),
        cmocka_unit_test(a_chain_of_too_many_steps_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
