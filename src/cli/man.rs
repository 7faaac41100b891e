//! `gristmill man`: manual pages.

use std::path::PathBuf;

use clap::Command;
use clap_mangen::Man;

use crate::cli::{Outcome, examples, output};
use crate::{Error, Result};

/// Writes manual pages
///
/// There is a page of the command, and a page of each of its commands.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill man ~/.local/share/man/man1     where `man gristmill-run` finds them"
    "gristmill man | man -l -"
))]
pub(crate) struct Args {
    /// The folder for the pages; without it, the page of the whole command is printed
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(crate) fn main(args: &Args, command: Command) -> Result<Outcome> {
    let pages = pages(command);
    let Some(folder) = &args.folder else {
        pages.iter().take(1).for_each(|page| output::data(&page.text));
        return Ok(Outcome::Done);
    };
    std::fs::create_dir_all(folder).map_err(|e| Error::io(e, folder))?;
    for page in &pages {
        let path = folder.join(&page.name);
        std::fs::write(&path, &page.text).map_err(|e| Error::io(e, &path))?;
    }
    output::say(&format!("{}: {} pages", folder.display(), pages.len()));
    Ok(Outcome::Done)
}

/// Manual page.
struct Page {
    /// Name of the file: `gristmill-run.1`.
    name: String,
    /// Text in the format of `man`.
    text: String,
}

/// Returns the page of the command, then the pages of its subcommands.
fn pages(command: Command) -> Vec<Page> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let each = command.get_subcommands().filter(|each| !each.is_hide_set()).map(|each| {
        // `gristmill run` becomes a single word, as in the names of the pages of Git and Cargo.
        let name = format!("{}-{}", command.get_name(), each.get_name());
        each.clone().display_name(name)
    });
    std::iter::once(command.clone()).chain(each).map(page).collect()
}

fn page(command: Command) -> Page {
    let man = Man::new(command).source(concat!("gristmill ", env!("CARGO_PKG_VERSION"))).manual("gristmill");
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = man.render(&mut text);
    Page { name: man.get_filename(), text: String::from_utf8_lossy(&text).into_owned() }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_has_a_page_with_all_that_it_takes() {
        let pages = pages(Cli::command());
        let mut command = Cli::command();
        command.build();
        let commands: Vec<&Command> = command.get_subcommands().filter(|each| each.get_name() != "help").collect();
        assert_eq!(pages.len(), commands.len() + 1);
        assert_eq!(pages[0].name, "gristmill.1");
        for each in commands {
            let name = format!("gristmill-{}", each.get_name());
            // Hyphens are escaped.
            assert!(pages[0].text.contains(&name.replace('-', "\\-")), "{name} in {}", pages[0].text);
            let page = pages.iter().find(|page| page.name == format!("{name}.1")).unwrap_or_else(|| panic!("{name}"));
            for option in each.get_arguments().filter(|option| !option.is_hide_set()) {
                let shown = match (option.get_long(), option.get_value_names()) {
                    (Some(long), _) => format!("--{long}").replace('-', "\\-"),
                    (None, Some(names)) => names[0].to_string(),
                    (None, None) => option.get_id().to_string().to_uppercase(),
                };
                assert!(page.text.contains(&shown), "{shown} of {name} in {}", page.text);
            }
            assert!(page.text.starts_with(".ie") && page.text.contains(".SH DESCRIPTION"), "{}", page.text);
        }
    }

    #[test]
    fn pages_are_written_into_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let args = Args { folder: Some(folder.path().join("man/man1")) };
        main(&args, Cli::command()).unwrap();
        assert!(folder.path().join("man/man1/gristmill.1").is_file());
        let page = std::fs::read_to_string(folder.path().join("man/man1/gristmill-analyze-padding.1")).unwrap();
        assert!(page.contains("gristmill\\-analyze\\-padding"), "{page}");
        let in_the_way = Args { folder: Some(folder.path().join("man/man1/gristmill.1")) };
        assert!(main(&in_the_way, Cli::command()).is_err());
    }
}
