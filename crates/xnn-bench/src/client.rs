//! The end that asks.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde::de::DeserializeOwned;

use crate::protocol::{Memory, Opened, Request, Runs, Side, Start};

/// How long a peer may think.
const PATIENCE: Duration = Duration::from_secs(90);

/// A peer's process; it ends with this value.
#[derive(Debug)]
pub struct Peer {
    process: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
    opened: Opened,
}

impl Peer {
    /// Starts the process and waits until it has opened its model.
    ///
    /// # Errors
    /// It does not start, ends, or says what is no [`Opened`]. That the runtime refuses the model is
    /// for [`Peer::start_of`] to say.
    pub fn start(command: &mut Command) -> Result<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let requests = process.stdin.take().context("no pipe")?;
        let output = BufReader::new(process.stdout.take().context("no pipe")?);
        let (sender, answers) = channel();
        // Ends with the process.
        thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let opened = Opened { version: String::new(), sides: [].into() };
        let mut peer = Self { process, requests, answers, opened };
        peer.opened = peer.answer()?;
        Ok(peer)
    }

    /// The runtime's version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.opened.version
    }

    /// Returns the cost of opening the model.
    ///
    /// # Errors
    /// The runtime cannot run the model, or has no such side.
    pub fn start_of(&self, side: &str) -> Result<&Start> {
        match self.opened.sides.get(side) {
            Some(Side::Ready(start)) => Ok(start),
            Some(Side::Failed { error }) => Err(anyhow!("{error}")),
            None => bail!("the peer has no side {side}"),
        }
    }

    /// Times of runs, at least one.
    ///
    /// # Errors
    /// The process has ended.
    pub fn time(&mut self, side: &str, duration: Duration) -> Result<Runs> {
        let millis = u64::try_from(duration.as_millis())?;
        self.ask(&Request::Time { side: side.into(), millis })
    }

    /// Times of runs of `count` instances that run at the same time.
    ///
    /// # Errors
    /// The process has ended.
    pub fn streams(&mut self, side: &str, count: usize, duration: Duration) -> Result<Runs> {
        let millis = u64::try_from(duration.as_millis())?;
        self.ask(&Request::Streams { side: side.into(), count, millis })
    }

    /// Memory with so many instances.
    ///
    /// # Errors
    /// The process has ended.
    pub fn instances(&mut self, side: &str, count: usize) -> Result<Memory> {
        self.ask(&Request::Instances { side: side.into(), count })
    }

    /// The answer to any request.
    ///
    /// # Errors
    /// The process has ended, or answers something else.
    pub fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T> {
        writeln!(self.requests, "{request}").context("its process has ended")?;
        self.answer()
    }

    fn answer<T: DeserializeOwned>(&mut self) -> Result<T> {
        let line = match self.answers.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                bail!("no answer within {} seconds", PATIENCE.as_secs())
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.process.wait()?;
                bail!("its process ended ({status})")
            }
        };
        serde_json::from_str(&line).with_context(|| format!("no answer: {line}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_peer_answers_until_it_ends() -> Result<()> {
        let memory = r#"{"steady": 1, "peak": 2}"#;
        let start =
            format!(r#"{{"load_ms": 1, "first_ms": 2, "memory": {memory}, "partitions": 3}}"#);
        let script = format!(
            r#"echo '{{"version": "1.2", "sides": {{"a": {start}, "b": {{"error": "no"}}}}}}'
            read line; echo '{{"us": [1.5, 2], "cpu_us": 3}}'; read line; echo '{memory}'; read line; exit 7"#
        );
        let mut peer = Peer::start(&mut shell(&script))?;
        assert_eq!(peer.version(), "1.2");
        assert_eq!(peer.start_of("a")?.partitions, Some(3));
        assert_eq!(peer.start_of("b").map_err(|error| error.to_string()), Err("no".into()));
        let runs = Runs { us: vec![1.5, 2.0], cpu_us: 3.0 };
        assert_eq!(peer.time("a", Duration::from_millis(1))?, runs);
        assert_eq!(peer.instances("a", 4)?.peak, 2);
        let ended = peer.instances("a", 8).map_err(|error| error.to_string());
        assert!(ended.as_ref().is_err_and(|error| error.contains("exit status: 7")), "{ended:?}");
        Ok(())
    }

    #[test]
    fn a_process_that_is_no_peer_is_an_error() {
        for script in ["exit 1", "echo hello", "echo '{}'"] {
            assert!(Peer::start(&mut shell(script)).is_err(), "{script}");
        }
    }
}
