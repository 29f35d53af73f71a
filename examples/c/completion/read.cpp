// Reading ratings from text.
#include "data.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace {

using Columns = std::array<std::string_view, 3>;

// From the most particular to the most general; the empty one stands for spaces and tabs.
constexpr std::string_view SEPARATORS[] = {"::", ",", ";", ""};

std::string_view trim(std::string_view text)
{
    std::size_t first = text.find_first_not_of(" \t\r\"");
    if (first == std::string_view::npos)
        return {};
    return text.substr(first, text.find_last_not_of(" \t\r\"") - first + 1);
}

// The first three columns of a line; returns how many there are, up to three.
std::size_t split(std::string_view line, std::string_view separator, Columns &columns)
{
    std::size_t count = 0;
    while (count < 3) {
        if (separator.empty()) {
            std::size_t first = line.find_first_not_of(" \t\r");
            if (first == std::string_view::npos)
                break;
            line.remove_prefix(first);
        }
        std::size_t end = separator.empty() ? line.find_first_of(" \t\r") : line.find(separator);
        columns[count++] = trim(line.substr(0, end));
        if (end == std::string_view::npos)
            break;
        line.remove_prefix(end + (separator.empty() ? 1 : separator.size()));
    }
    return count;
}

bool parse_id(std::string_view text, std::uint64_t &id)
{
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    return error == std::errc() && end == text.data() + text.size();
}

bool parse_value(std::string_view text, float &value)
{
    std::string copy(text);
    char *end = nullptr;
    value = std::strtof(copy.c_str(), &end);
    return !copy.empty() && *end == '\0' && std::isfinite(value);
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

RawRating parse(std::string_view line, std::string_view separator)
{
    Columns columns;
    std::size_t count = split(line, separator, columns);
    if (count < 3)
        throw std::runtime_error("expected user, item and rating, found " + std::to_string(count) +
                                 (count == 1 ? " column" : " columns"));
    RawRating rating{};
    if (!parse_id(columns[0], rating.user))
        throw std::runtime_error("the user " + quoted(columns[0]) + " is not a whole number of 64 bits");
    if (!parse_id(columns[1], rating.item))
        throw std::runtime_error("the item " + quoted(columns[1]) + " is not a whole number of 64 bits");
    if (!parse_value(columns[2], rating.value))
        throw std::runtime_error("the rating " + quoted(columns[2]) + " is not a finite number");
    return rating;
}

// The first separator that cuts a line into three columns.
std::string_view find_separator(std::string_view line)
{
    Columns columns;
    for (std::string_view separator : SEPARATORS)
        if (split(line, separator, columns) == 3)
            return separator;
    return "";
}

// Whether a line names columns: it has three, and none is a number.
bool is_header(std::string_view line, std::string_view separator)
{
    Columns columns;
    if (split(line, separator, columns) < 3)
        return false;
    float value;
    for (std::string_view column : columns)
        if (parse_value(column, value))
            return false;
    return true;
}

}  // namespace

std::vector<RawRating> read_ratings(const std::string &file)
{
    std::ifstream in(file);
    if (!in)
        throw std::runtime_error("cannot open " + file + ": " + std::strerror(errno));
    std::vector<RawRating> ratings;
    std::string line;
    std::string_view separator;
    bool seen = false;
    for (std::size_t number = 1; std::getline(in, line); ++number) {
        if (trim(line).empty())
            continue;
        if (!seen) {
            seen = true;
            separator = find_separator(line);
            if (is_header(line, separator))
                continue;
        }
        try {
            ratings.push_back(parse(line, separator));
        } catch (const std::runtime_error &error) {
            throw std::runtime_error(file + ", line " + std::to_string(number) + ": " + error.what());
        }
    }
    if (in.bad())
        throw std::runtime_error("cannot read " + file + ": " + std::strerror(errno));
    if (ratings.empty())
        throw std::runtime_error("there are no ratings in " + file);
    return ratings;
}
