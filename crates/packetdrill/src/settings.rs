//! The commands by which a script prepares its host, as parameters of the simulator's TCP.
//!
//! `defaults.sh`, which nearly all scripts run, stands for the defaults here. Commands and settings without an effect on
//! the model are ignored; others make a script not applicable.

use apportion_scenario::tcp::TcpParams;

use crate::verdict::Reason;

/// The settings of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `tcp_congestion_control`.
    pub algorithm: String,
    /// `tcp_ecn`.
    pub ecn: u32,
    /// `tcp_ecn_option`: whether segments leave room for byte counters of Accurate ECN, which are not compared.
    pub counters: bool,
    /// `tcp_slow_start_after_idle`.
    pub restarts: bool,
    /// `tcp_early_retrans`: whether there are tail loss probes.
    pub probes: bool,
    /// `tcp_sack`.
    pub sack: bool,
    /// `tcp_timestamps`.
    pub timestamps: bool,
    /// `fq` as the queue of the host, which paces.
    pub pacing: bool,
    /// `hystart`.
    pub hystart: bool,
    /// Whether the application leaves `TCP_NODELAY` unset.
    pub nagle: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            algorithm: "cubic".to_owned(),
            ecn: 0,
            counters: true,
            restarts: false,
            probes: true,
            sack: true,
            timestamps: true,
            pacing: false,
            hystart: true,
            nagle: true,
        }
    }
}

/// Settings without an effect on the model: buffers, the sizes of bursts, which are joined, and retries; and what only Fast
/// Open has.
const IGNORED: &[&str] = &[
    "tcp_min_tso_segs",
    "tcp_tso_win_divisor",
    "tcp_rmem",
    "tcp_wmem",
    "tcp_syncookies",
    "tcp_syn_retries",
    "tcp_synack_retries",
    "tcp_fastopen",
    "tcp_fastopen_key",
    "tcp_pacing_ss_ratio",
    "tcp_pacing_ca_ratio",
    "tcp_notsent_lowat",
    "tcp_frto",
    "tcp_dsack",
    "tcp_ecn_fallback",
    "tcp_ecn_option_beacon",
    "tcp_fack",
    "tcp_no_metrics_save",
    "tcp_autocorking",
    "tcp_limit_output_bytes",
    "optmem_max",
    "tcp_invalid_ratelimit",
    "tcp_tw_reuse",
];

/// Commands that prepare nothing that the model has.
const INERT: &[&str] = &["sleep", "true", "ethtool", "ip tcp_metrics", "sync", "/tmp/sysctl_restore_"];

impl Settings {
    /// Applies commands.
    ///
    /// # Errors
    /// A command that the model cannot follow.
    pub fn apply(&mut self, commands: &str) -> Result<(), Reason> {
        let joined = commands.replace("\\\n", " ");
        for command in joined.split(['\n', ';']).map(|line| line.split('#').next().unwrap_or_default().trim())
        {
            self.command(command)?;
        }
        Ok(())
    }

    fn command(&mut self, command: &str) -> Result<(), Reason> {
        let program = command.split_whitespace().next().unwrap_or_default();
        let unknown = || Err(Reason::new("commands of the host", command));
        if program.is_empty()
            || program.ends_with("defaults.sh")
            || INERT.iter().any(|inert| command.starts_with(inert))
        {
            return Ok(());
        }
        if program == "sysctl" || program.ends_with("set_sysctls.py") {
            // Other words are options and redirections of the output.
            let settings = command.split_whitespace().skip(1).filter_map(|word| word.split_once('='));
            for (key, value) in settings {
                let key = key.rsplit(['.', '/']).next().unwrap_or(key);
                self.set(key, value.trim_matches('"'))?;
            }
            return Ok(());
        }
        if let Some((value, file)) = command.strip_prefix("echo").and_then(|rest| rest.split_once('>')) {
            return self.set(file.trim().rsplit('/').next().unwrap_or_default(), value.trim());
        }
        if program == "tc" {
            let words: Vec<&str> = command.split_whitespace().collect();
            match words.iter().position(|&word| word == "root").and_then(|root| words.get(root + 1)) {
                Some(&"fq") => self.pacing = true,
                Some(&"pfifo") if !command.contains("limit 0") => self.pacing = false,
                _ => return Err(Reason::new("a queue of the host that refuses packets", command)),
            }
            return Ok(());
        }
        unknown()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), Reason> {
        let is_on = value != "0";
        match key {
            "tcp_congestion_control" => value.trim_matches('"').clone_into(&mut self.algorithm),
            "tcp_ecn" => self.ecn = value.parse().unwrap_or(u32::MAX),
            "tcp_ecn_option" => self.counters = is_on,
            "tcp_slow_start_after_idle" => self.restarts = is_on,
            "tcp_early_retrans" => self.probes = is_on,
            "tcp_sack" => self.sack = is_on,
            "tcp_timestamps" => self.timestamps = is_on,
            "hystart" => self.hystart = is_on,
            "hystart_detect" if value == "3" => {}
            "tcp_recovery" if value == "1" => {}
            "tcp_reordering" if value == "3" => {}
            _ if IGNORED.contains(&key) => {}
            _ => return Err(Reason::new("a setting of the host", &format!("{key}={value}"))),
        }
        Ok(())
    }

    /// Whether this end asks for Accurate ECN, or grants it.
    #[must_use]
    pub fn has_accurate_ecn(&self, active: bool) -> bool {
        self.ecn == 3 || !active && (self.ecn == 4 || self.ecn == 5)
    }

    /// The parameters of a connection with segments of `mss` bytes, which this end opens or its peer.
    ///
    /// # Errors
    /// A setting that the simulator's TCP does not have.
    pub fn params(&self, active: bool, mss: u16) -> Result<TcpParams, Reason> {
        let Some(mut params) = TcpParams::profile("linux") else {
            return Err(Reason::new("a setting of the host", "profile linux"));
        };
        let algorithm = match self.algorithm.as_str() {
            // The simulator has Accurate ECN with Prague.
            _ if self.has_accurate_ecn(active) => "prague",
            "reno" => "newreno",
            name => name,
        };
        // 2 grants it only, and 4 grants Accurate ECN and asks for classic ECN.
        let ecn = self.ecn == 1 || self.ecn == if active { 4 } else { 2 };
        let idle = if self.restarts { "decay" } else { "keep" };
        let values = [
            ("algorithm", algorithm),
            ("segment", &format!("{mss}B")),
            // `tcp_rmem`.
            ("window", "15728640B"),
            ("ecn", if ecn { "true" } else { "false" }),
            ("idle", idle),
            ("pacing", if self.pacing { "true" } else { "false" }),
            ("hystart", if self.hystart { "true" } else { "false" }),
            ("nagle", if self.nagle { "true" } else { "false" }),
            // A SYN/ACK that is sent again waits twice as long each time.
            ("linear_syns", if active { "4" } else { "0" }),
        ];
        for (name, value) in values {
            params
                .set(name, value)
                .map_err(|error| Reason::new("a setting of the host", &error.to_string()))?;
        }
        Ok(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_become_settings() {
        let mut settings = Settings::default();
        let commands = "../common/defaults.sh\n../set_sysctls.py /proc/sys/net/ipv4/tcp_slow_start_after_idle=1 \\\n /x/tcp_ecn=2\n\
            sysctl -q net.ipv4.tcp_early_retrans=0 # a comment\necho 3 > /sys/module/tcp_cubic/parameters/hystart_detect\n\
            tc qdisc replace dev tun0 root fq\nsysctl -q net/ipv4/tcp_wmem=\"4096 $((256*1024)) 4194304\"";
        settings.apply(commands).unwrap();
        let expected =
            Settings { restarts: true, ecn: 2, probes: false, pacing: true, ..Settings::default() };
        assert_eq!(settings, expected);
        for refused in
            ["tc qdisc add dev tun0 root pfifo limit 0", "iptables -L", "sysctl -q net.ipv4.tcp_recovery=0"]
        {
            assert!(settings.apply(refused).is_err(), "{refused}");
        }
    }
}
