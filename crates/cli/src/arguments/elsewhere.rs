//! The command line on systems other than Linux: what needs Linux is not in help, and is refused by its name.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

/// Commands that need Linux.
const COMMANDS: [&str; 3] = ["lab", "shell", "gateway"];
/// Options that need Linux, by the command.
const OPTIONS: [(&str, &[&str]); 3] = [
    ("run", &["watch"]),
    ("compare", &["parity", "seeds", "set", "retries", "backend"]),
    ("reproduce", &["world", "retries", "allow_late"]),
];

/// Hides what needs Linux. Its commands take any words.
pub fn hide(mut command: Command) -> Command {
    for name in COMMANDS {
        let words = Arg::new("words").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true);
        let words = words.value_parser(clap::value_parser!(OsString));
        let hidden = Command::new(name).hide(true).disable_help_flag(true).arg(words);
        let is_there = command.find_subcommand(name).is_some();
        command =
            if is_there { command.mut_subcommand(name, |_| hidden) } else { command.subcommand(hidden) };
    }
    for (name, options) in OPTIONS {
        command = command.mut_subcommand(name, |command| {
            options.iter().fold(command, |command, option| command.mut_arg(option, |arg| arg.hide(true)))
        });
    }
    command.mut_subcommand("compare", |command| {
        let command = command.about("Compare runs with the first of them");
        let command = command.mut_arg("out", |arg| arg.help("Also write the comparison to this .html file"));
        command.mut_arg("force", |arg| arg.help("Overwrite the page"))
    })
}

/// The message that refuses what needs Linux, if it was asked for.
pub fn refusal(matches: &ArgMatches) -> Option<String> {
    let (name, given) = matches.subcommand()?;
    // The simulator is everywhere: `--world simulator` asks for nothing else.
    let is_asked = |option: &&str| {
        let word = given.get_raw(option).and_then(|mut words| words.next());
        given.value_source(option) == Some(ValueSource::CommandLine)
            && (*option != "world" || word.is_none_or(|word| word != "simulator"))
    };
    let options = OPTIONS.iter().filter(|(of, _)| *of == name).flat_map(|(_, options)| *options);
    let option = options
        .copied()
        .find(|option| is_asked(option))
        .map(|option| format!(" --{}", option.replace('_', "-")));
    if option.is_none() && !COMMANDS.contains(&name) {
        return None;
    }
    let option = option.unwrap_or_default();
    Some(format!(
        "`apportion {name}{option}` needs Linux (WSL2 or a virtual machine: see Platforms in docs/install.md)"
    ))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn command() -> Command {
        hide(crate::arguments::Arguments::command())
    }

    fn refused(line: &str) -> Option<String> {
        refusal(&command().try_get_matches_from(line.split(' ')).unwrap())
    }

    #[test]
    fn what_needs_linux_is_refused_by_its_name() {
        for (line, what) in [
            ("apportion lab", "lab"),
            ("apportion lab --help", "lab"),
            ("apportion shell --rate 10Mbit -- curl -s example.org", "shell"),
            ("apportion gateway check home.toml --backend kernel", "gateway"),
            ("apportion run quickstart --watch", "run --watch"),
            ("apportion run quickstart --watch 127.0.0.1:0", "run --watch"),
            ("apportion compare --parity quickstart", "compare --parity"),
            ("apportion compare --parity simulator", "compare --parity"),
            ("apportion compare 1 2 --backend kernel", "compare --backend"),
            ("apportion reproduce pps --world lab", "reproduce --world"),
            ("apportion reproduce pps --allow-late", "reproduce --allow-late"),
        ] {
            let message = format!("`apportion {what}` needs Linux (WSL2 or a virtual machine: ");
            assert!(refused(line).is_some_and(|text| text.starts_with(&message)), "{line}");
        }
        for line in [
            "run quickstart --seeds 2",
            "reproduce pps --world simulator",
            "compare 1 2 --allow-late",
            "list",
        ] {
            assert_eq!(refused(&format!("apportion {line}")), None);
        }
    }

    #[test]
    fn what_needs_linux_is_not_in_help() {
        let mut command = command();
        let help = command.render_long_help().to_string();
        assert!(
            help.contains("\n  run ") && !COMMANDS.iter().any(|name| help.contains(&format!("\n  {name} "))),
            "{help}"
        );
        for (name, options) in OPTIONS {
            let help = command.find_subcommand_mut(name).unwrap().render_long_help().to_string();
            for option in options {
                assert!(
                    !help.contains(&format!("--{}", option.replace('_', "-"))),
                    "{name} {option}:\n{help}"
                );
            }
        }
        command.debug_assert();
    }
}
