//! What a shell command runs, as far as that is certain: for rules, hints and previews. It protects nothing; the fence
//! does.
//!
//! A reader of our own takes a small part of bash apart, byte by byte and in one pass. Whatever is not in that part is
//! *not analyzable*, however harmless: bash has too many corners to list what is dangerous, so what is understood is
//! listed instead. Tests hold the reader against bash itself with texts that are made up.

mod builtins;
mod handed;
mod heredocs;
mod reader;
mod words;

#[cfg(test)]
mod tests;

use toolhost_contract::shell::Analyzed;

/// Longer commands are not analyzed, bytes.
const COMMAND_BYTES_MAX: usize = 32 * 1024;
/// Most simple commands in one command.
const COMMANDS_MAX: usize = 500;
/// Deepest nesting of groups, conditions, loops and substitutions, counted together.
const DEPTH_MAX: usize = 24;

/// How often a command is followed into one that it runs: `env nohup timeout 5 bash -c 'vim x'`.
const HANDED_DEPTH_MAX: usize = 8;

/// Takes a command apart as bash would. The time and the memory it takes grow with its length alone.
pub fn analyze(text: &str) -> Analyzed {
    match reader::read(text) {
        Ok(mut commands) => {
            commands.iter_mut().for_each(|command| handed::find(command, HANDED_DEPTH_MAX));
            Analyzed::Commands(commands)
        }
        Err(why) => Analyzed::NotAnalyzable { why },
    }
}
