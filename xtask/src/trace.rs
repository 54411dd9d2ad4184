//! Which functions of a program run. Each begins with a breakpoint, which goes when it is met, so that the program
//! runs at its own speed, with all instructions of the processor.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use nix::libc::PTRACE_EVENT_EXEC;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

/// The instruction `int3`.
const BREAKPOINT: u8 = 0xcc;

/// Stops itself, so that it can be watched from the program's first instruction on.
const STOPPED: &str = r#"kill -STOP $$; exec "$0" "$@""#;

/// The functions of a program that run with these arguments, in bytes by symbol.
pub fn functions(program: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<BTreeMap<String, u64>> {
    let code = Code::read(program)?;
    let mut command = Command::new("sh");
    command.args(["-c", STOPPED]).arg(program).args(arguments);
    let child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().context("cannot run sh")?;
    let process = Pid::from_raw(child.id().try_into()?);
    waitpid(process, Some(WaitPidFlag::WUNTRACED))?;
    let options = ptrace::Options::PTRACE_O_TRACEEXEC
        | ptrace::Options::PTRACE_O_TRACECLONE
        | ptrace::Options::PTRACE_O_EXITKILL;
    ptrace::seize(process, options)?;
    kill(process, Signal::SIGCONT)?;
    let (mut breakpoints, mut met) = (None, BTreeSet::new());
    loop {
        match waitpid(None, Some(WaitPidFlag::__WALL))? {
            WaitStatus::Exited(pid, status) if pid == process => match status {
                0 => break,
                status => bail!("{} exited with {status}", program.display()),
            },
            WaitStatus::Signaled(pid, signal, _) if pid == process => {
                bail!("{} ended by {signal}", program.display())
            }
            WaitStatus::PtraceEvent(pid, _, PTRACE_EVENT_EXEC) => {
                breakpoints = Some(Breakpoints::set(&code, program, pid)?);
                ptrace::cont(pid, None)?;
            }
            WaitStatus::Stopped(pid, Signal::SIGTRAP) => {
                let breakpoints = breakpoints.as_ref().context("a trap before the program")?;
                met.extend(breakpoints.pass(&code, pid)?);
                ptrace::cont(pid, None)?;
            }
            WaitStatus::Stopped(pid, signal) => ptrace::cont(pid, signal)?,
            WaitStatus::PtraceEvent(pid, ..) => ptrace::cont(pid, None)?,
            _ => {}
        }
    }
    Ok(by_symbol(met.iter().filter_map(|address| code.functions.get(address))))
}

/// All functions of a program, in bytes by symbol.
pub fn all_functions(program: &Path) -> Result<BTreeMap<String, u64>> {
    Ok(by_symbol(Code::read(program)?.functions.values()))
}

fn by_symbol<'a>(functions: impl Iterator<Item = &'a Function>) -> BTreeMap<String, u64> {
    let named = functions.flat_map(|it| it.names.iter().map(|name| (name.clone(), it.size)));
    named.collect()
}

/// The functions of a program.
struct Code {
    /// By where they begin, in the file's addresses.
    functions: BTreeMap<u64, Function>,
}

struct Function {
    /// Several where code is the same.
    names: Vec<String>,
    /// In bytes.
    size: u64,
    /// What a breakpoint replaces.
    first: u8,
}

impl Code {
    fn read(program: &Path) -> Result<Self> {
        let bytes =
            fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
        let file = object::File::parse(bytes.as_slice())?;
        let mut functions = BTreeMap::<u64, Function>::new();
        for symbol in file.symbols().filter(|it| it.kind() == SymbolKind::Text) {
            let Some(index) = symbol.section_index() else { continue };
            let section = file.section_by_index(index)?;
            let Some(&[first]) = section.data_range(symbol.address(), 1)? else { continue };
            let function = functions.entry(symbol.address()).or_insert_with(|| Function {
                names: Vec::new(),
                size: symbol.size(),
                first,
            });
            function.names.push(symbol.name()?.to_owned());
        }
        Ok(Self { functions })
    }

    /// The first of the function that begins at this address.
    fn byte(&self, address: u64) -> Option<u8> {
        self.functions.get(&address).map(|function| function.first)
    }
}

/// Those in a process.
struct Breakpoints {
    memory: File,
    /// What is added to the file's addresses.
    base: u64,
}

impl Breakpoints {
    /// At all functions of a program that has been started, and has not begun.
    fn set(code: &Code, program: &Path, process: Pid) -> Result<Self> {
        let path = fs::canonicalize(program)?;
        let maps = fs::read_to_string(format!("/proc/{process}/maps"))?;
        let first = maps.lines().find(|line| line.ends_with(&*path.to_string_lossy()));
        let base =
            first.and_then(|line| line.split_once('-')).context("the program is not mapped")?.0;
        let base = u64::from_str_radix(base, 16)?;
        let memory = OpenOptions::new().write(true).open(format!("/proc/{process}/mem"))?;
        for address in code.functions.keys() {
            memory.write_all_at(&[BREAKPOINT], base + address)?;
        }
        Ok(Self { memory, base })
    }

    /// Takes away the one that a thread has met, and lets it go on there; its address.
    fn pass(&self, code: &Code, thread: Pid) -> Result<Option<u64>> {
        let mut registers = ptrace::getregs(thread)?;
        let met = (registers.rip - 1).wrapping_sub(self.base);
        let Some(byte) = code.byte(met) else { return Ok(None) };
        self.memory.write_all_at(&[byte], registers.rip - 1)?;
        registers.rip -= 1;
        ptrace::setregs(thread, registers)?;
        Ok(Some(met))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_in_a_program() -> Result<()> {
        let code = Code::read(&std::env::current_exe()?)?;
        let mut functions = code.functions.iter();
        let (address, _) = functions
            .find(|(_, it)| it.names.iter().any(|name| name.contains("functions_are_found")))
            .context("this test is a function")?;
        assert!(code.byte(*address).is_some());
        let (first, last) = (code.functions.keys().min(), code.functions.keys().max());
        assert_eq!(code.byte(last.context("functions")? + 1), None);
        assert_eq!(code.byte(first.context("functions")? - 1), None);
        Ok(())
    }
}
