#include "options.hpp"

#include <cerrno>
#include <cmath>
#include <cstdlib>

const char *const HELP =
    "completion: matrix completion in conflict-free batches\n"
    "\n"
    "  --ratings FILE      user, item, rating: MovieLens `::`, commas, semicolons, tabs or spaces [generated]\n"
    "  --rank N            factors for each user and item [32]\n"
    "  --epochs N          passes over the ratings [10]\n"
    "  --batch N           ratings in a batch [2000]\n"
    "  --workers N         threads [one for each core]; under `hectare run -n N`, each process is a worker\n"
    "  --lr X, --decay X   learning rate [0.05], and what it is multiplied with after each epoch [0.8]\n"
    "  --reg X             weight of the squared norms of the rows [0.04]\n"
    "  --seed N            of the generated ratings, the split, the order and the initial model [1]\n"
    "  --memory KIND       shared: one model that all threads write\n"
    "                      areas: each row belongs to one worker at a time [default]\n"
    "  --transport KIND    of areas: rows (they change owners, in place) [default]; or each worker its own model, and\n"
    "                      published (rows that others need), copies (every row that was written)\n"
    "  --tracking KIND     of copies: logged [default], automatic\n"
    "  --bench             time areas against shared memory for 1, 2 and 4 workers, or --workers; prints JSON;\n"
    "                      with --transport published or copies, that\n"
    "  --repeats N         of --bench: how often each is run in turn [8]\n";

const char *name_of(Memory memory) { return memory == Memory::shared ? "shared" : "areas"; }

const char *name_of(Transport transport)
{
    switch (transport) {
    case Transport::rows: return "rows";
    case Transport::published: return "published";
    default: return "copies";
    }
}

namespace {

std::size_t whole(const std::string &name, const std::string &text, std::uint64_t least, std::uint64_t most)
{
    char *end = nullptr;
    errno = 0;
    unsigned long long value = std::strtoull(text.c_str(), &end, 10);
    bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || errno != 0 || value < least || value > most)
        throw Usage(name + " must be a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
                    ", not '" + text + "'");
    return static_cast<std::size_t>(value);
}

double real(const std::string &name, const std::string &text, bool zero)
{
    char *end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !std::isfinite(value) || value < 0.0 || (value == 0.0 && !zero))
        throw Usage(name + " must be a number " + (zero ? "of 0 or more" : "above 0") + ", not '" + text + "'");
    return value;
}

template <typename T> struct Choice {
    const char *name;
    T value;
};

template <typename T, std::size_t N>
T one_of(const std::string &name, const std::string &text, const Choice<T> (&choices)[N])
{
    std::string names;
    for (const Choice<T> &choice : choices) {
        if (text == choice.name)
            return choice.value;
        names += (names.empty() ? "" : ", ") + std::string(choice.name);
    }
    throw Usage(name + " must be one of " + names + ", not '" + text + "'");
}

constexpr Choice<Memory> MEMORIES[] = {{"shared", Memory::shared}, {"areas", Memory::areas}};
constexpr Choice<Transport> TRANSPORTS[] = {
    {"rows", Transport::rows}, {"published", Transport::published}, {"copies", Transport::copies}};
constexpr Choice<bool> TRACKINGS[] = {{"logged", false}, {"automatic", true}};

using Setter = void (*)(Options &, const std::string &name, const std::string &text);

struct Option {
    const char *name;
    Setter set;
};

constexpr std::uint64_t MILLION = 1000000;

#define SET(expression) [](Options &options, const std::string &name, const std::string &text) { expression; }
const Option OPTIONS[] = {
    {"--ratings", [](Options &options, const std::string &, const std::string &text) { options.ratings = text; }},
    {"--rank", SET(options.rank = whole(name, text, 1, MILLION))},
    {"--epochs", SET(options.epochs = whole(name, text, 1, MILLION))},
    {"--batch", SET(options.batch = whole(name, text, 1, 1000 * MILLION))},
    {"--workers", SET(options.workers = whole(name, text, 1, 64))},
    {"--repeats", SET(options.repeats = whole(name, text, 1, MILLION))},
    {"--seed", SET(options.seed = whole(name, text, 0, UINT64_MAX))},
    {"--lr", SET(options.lr = real(name, text, false))},
    {"--decay", SET(options.decay = real(name, text, false))},
    {"--reg", SET(options.reg = real(name, text, true))},
    {"--memory", SET(options.memory = one_of(name, text, MEMORIES))},
    {"--transport", SET(options.transport = one_of(name, text, TRANSPORTS))},
    {"--tracking", SET(options.automatic = one_of(name, text, TRACKINGS))},
};
#undef SET

const Option &find(const std::string &name)
{
    for (const Option &option : OPTIONS)
        if (name == option.name)
            return option;
    throw Usage("unknown option '" + name + "'");
}

}  // namespace

Options parse_options(int count, char **arguments)
{
    Options options;
    for (int at = 1; at < count; ++at) {
        std::string name = arguments[at];
        if (name == "--help" || name == "-h") {
            options.help = true;
            continue;
        }
        if (name == "--bench") {
            options.bench = true;
            continue;
        }
        std::size_t equals = name.find('=');
        std::string text = equals == std::string::npos ? "" : name.substr(equals + 1);
        name = name.substr(0, equals);
        const Option &option = find(name);
        if (equals == std::string::npos) {
            if (++at == count)
                throw Usage(name + " needs a value");
            text = arguments[at];
        }
        option.set(options, name, text);
    }
    if (options.automatic && options.transport != Transport::copies)
        throw Usage("--tracking automatic is for --transport copies");
    return options;
}
