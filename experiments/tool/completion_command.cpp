#include <algorithm>

#include "harness/results.hpp"
#include "harness/text.hpp"
#include "samesum/samesum.hpp"
#include "tool/commands.hpp"

namespace samesum::harness {
namespace {

/// The names of the methods of an operation, without operation and backend.
std::vector<std::string> method_names(const std::string& operation) {
  std::vector<std::string> all;
  for (const Method& m : methods(operation))
    if (m.backend == "cpu") all.push_back(short_name(m));
  return all;
}

/// The parts of a script in which shells differ. WORDS stands for words to choose from.
struct Shell {
  std::string name, head, offer, files, tail;
};

const Shell shells[] = {
    {"bash",
     "# Completion of samesum for bash: source <(samesum completion bash)\n"
     "_samesum() {\n"
     "  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
     "  ((COMP_CWORD > 1)) || command=''\n"
     "  local operation=sum i\n"
     "  for ((i = 2; i < COMP_CWORD - 1; ++i)); do\n"
     "    [[ ${COMP_WORDS[i]} != --operation ]] || operation=${COMP_WORDS[i+1]}\n"
     "  done\n",
     "COMPREPLY=($(compgen -W 'WORDS' -- \"$word\"))", "COMPREPLY=($(compgen -f -- \"$word\"))",
     "}\ncomplete -o filenames -F _samesum samesum\n"},
    {"zsh",
     "#compdef samesum\n"
     "# Completion of samesum for zsh: source <(samesum completion zsh)\n"
     "_samesum() {\n"
     "  local word=$words[CURRENT] previous=$words[CURRENT-1] command=$words[2]\n"
     "  ((CURRENT > 2)) || command=''\n"
     "  local operation=${words[${words[(i)--operation]}+1]:-sum}\n",
     "compadd -- WORDS", "_files", "}\ncompdef _samesum samesum\n"}};

std::string shell_names(const std::string& separator) { return listed(shells, separator, &Shell::name); }

/// The values that may follow an option or a command and are known in advance; empty for files and numbers.
std::string values_of(const std::string& command, const std::string& option) {
  if (option == "--method") return listed(method_names(command), " ");
  if (option == "--operation")
    return listed(command == "compare" ? Truth::operations() : operations_to_choose_for(), " ");
  if (option == "--format" || option == "--input") return format_names(" ");
  if (option == "--promise") return promise_names(" ");
  if (option == "--backend") return listed(backends, " ");
  if (option == "--axis") return "rows columns";
  if (option == "list") return listed(operations(), " ") + ' ' + listed(operations(true), " ");
  if (option == "completion") return shell_names(" ");
  return "";
}

std::string offer(const Shell& shell, const std::string& words) {
  return std::string{shell.offer}.replace(shell.offer.find("WORDS"), 5, words);
}

}  // namespace

std::string completion_script(const std::string& name, const std::vector<CommandWords>& commands) {
  const Shell* shell = std::ranges::find(shells, name, &Shell::name);
  if (shell == std::end(shells))
    throw UsageError{"SHELL: '" + printable(name) + "' is not supported; choose one of " + shell_names(", ")};
  const auto case_of = [&](const std::string& pattern, const std::string& action) {
    return "    (" + pattern + ") " + action + "; return ;;\n";
  };
  std::string values, options;
  for (const CommandWords& c : commands) {
    std::vector<std::string> before = c.options;
    before.push_back(c.name);
    for (const std::string& word : before)
      if (const std::string words = values_of(c.name, word); !words.empty())
        values += case_of("'" + c.name + " " + word + "'", offer(*shell, words));
    options += case_of("'" + c.name + " -'*", offer(*shell, listed(c.options, " ")));
  }
  std::string methods;
  for (const std::string& operation : operations())
    methods += case_of("'--methods " + operation + "'", offer(*shell, listed(method_names(operation), " ")));
  return shell->head + "  case \"$previous $operation\" in\n" + methods + "  esac\n" +
         "  case \"$command $word\" in\n" + options +
         case_of("' '*", offer(*shell, listed(std::span{commands}.subspan(1), " ", &CommandWords::name))) +
         "  esac\n" + "  case \"$command $previous\" in\n" + values + "  esac\n  " + shell->files + '\n' +
         shell->tail;
}

}  // namespace samesum::harness
