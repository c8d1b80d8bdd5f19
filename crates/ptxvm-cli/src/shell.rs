//! `ptxvm completions` and `ptxvm man`: shell completions and manual pages.
//!
//! Invariant: everything is generated from the definition of the command line ([`Cli`]), so it is always up
//! to date.

use crate::options::{Cli, CompletionsOptions, ManOptions};
use crate::output::write_file;
use crate::{Exit, UsageError};
use clap::CommandFactory as _;

/// Prints the completions of a shell.
pub(crate) fn completions(options: &CompletionsOptions) -> Result<Exit, UsageError> {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "ptxvm", &mut text);
    crate::print_out(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}

/// Prints one manual page, or writes all of them.
pub(crate) fn man(options: &ManOptions) -> Result<Exit, UsageError> {
    let mut program = Cli::command();
    program.build();
    let Some(folder) = &options.out else {
        let command = match &options.command {
            None => program,
            Some(name) => {
                let found = program.find_subcommand(name).cloned();
                found.ok_or_else(|| format!("there is no command `{name}`; `ptxvm --help` lists them"))?
            }
        };
        let name = page_name(&command);
        crate::print_out(&String::from_utf8_lossy(&page(command, &name)?))?;
        return Ok(Exit::Done);
    };
    std::fs::create_dir_all(folder).map_err(|e| format!("cannot make `{}`: {e}", folder.display()))?;
    let commands = program.get_subcommands().filter(|command| command.get_name() != "help");
    for command in std::iter::once(&program).chain(commands) {
        let name = page_name(command);
        let text = page(command.clone(), &name)?;
        write_file(&folder.join(format!("{name}.1")), |out| out.write_all(&text))?;
    }
    Ok(Exit::Done)
}

/// `ptxvm` or `ptxvm-run`.
fn page_name(command: &clap::Command) -> String {
    match command.get_name() {
        "ptxvm" => "ptxvm".to_owned(),
        name => format!("ptxvm-{name}"),
    }
}

fn page(command: clap::Command, name: &str) -> Result<Vec<u8>, UsageError> {
    let mut text = Vec::new();
    // Man pages need names with static lifetime.
    let command = command.name(name.to_owned()).version(env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok(text)
}
