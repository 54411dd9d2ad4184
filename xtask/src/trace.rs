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
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};

/// The instruction `int3`.
const BREAKPOINT: u8 = 0xcc;

/// Stops itself, so that it can be watched from the program's first instruction on.
const STOPPED: &str = r#"kill -STOP $$; exec "$0" "$@""#;

/// The functions of a program that run with these arguments, by symbol.
pub fn functions(program: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<BTreeSet<String>> {
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
    let names = met.iter().filter_map(|address| code.functions.get(address)).flatten();
    Ok(names.cloned().collect())
}

/// A program's code in its file.
struct Code {
    /// Where the first byte lies, in the file's addresses.
    start: u64,
    bytes: Vec<u8>,
    /// Names of what begins at an address; several where code is the same.
    functions: BTreeMap<u64, Vec<String>>,
}

impl Code {
    fn read(program: &Path) -> Result<Self> {
        let bytes =
            fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
        let file = object::File::parse(bytes.as_slice())?;
        let text = || file.sections().filter(|section| section.kind() == SectionKind::Text);
        let start = text().map(|section| section.address()).min().context("no code")?;
        let end =
            text().map(|section| section.address() + section.size()).max().context("no code")?;
        let mut code = vec![0; usize::try_from(end - start)?];
        for section in text() {
            let at = usize::try_from(section.address() - start)?;
            let data = section.data()?;
            code.get_mut(at..at + data.len()).context("overlapping code")?.copy_from_slice(data);
        }
        let mut functions = BTreeMap::<u64, Vec<String>>::new();
        for symbol in
            file.symbols().filter(|it| it.is_definition() && it.kind() == object::SymbolKind::Text)
        {
            if (start..end).contains(&symbol.address()) {
                functions.entry(symbol.address()).or_default().push(symbol.name()?.to_owned());
            }
        }
        Ok(Self { start, bytes: code, functions })
    }

    fn byte(&self, address: u64) -> Option<u8> {
        self.bytes.get(usize::try_from(address.checked_sub(self.start)?).ok()?).copied()
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
        let Some(byte) = code.byte(met).filter(|_| code.functions.contains_key(&met)) else {
            return Ok(None);
        };
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
        let (address, _) = code
            .functions
            .iter()
            .find(|(_, names)| names.iter().any(|name| name.contains("functions_are_found")))
            .context("this test is a function")?;
        assert!(code.byte(*address).is_some());
        assert_eq!(code.byte(code.start + code.bytes.len() as u64), None);
        assert_eq!(code.byte(code.start - 1), None);
        Ok(())
    }
}
