//! Quantities in the syntax of tc(8), section "PARAMETERS".

use apportion_core::units::{Rate, Span};

/// Maximum rate, in bits per second. Chosen: a thousand times the fastest Ethernet.
const FASTEST: f64 = 1e15;
/// Maximum time, in nanoseconds: an hour, the `interplanetary` of tc-cake(8).
const LONGEST: f64 = 3.6e12;

/// A number and the text after it.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit))
}

/// The message about a word that contains a shell variable.
pub(super) fn variable(text: &str) -> Option<String> {
    text.contains('$').then(|| format!("`{text}` has a variable that is set nowhere here; write its value"))
}

/// A rate: `bit` and `bps` are bits and bytes per second, with prefixes of SI or, as in `Kibit`, of IEC.
pub(super) fn rate(text: &str) -> Result<Rate, String> {
    let refuse = || {
        variable(text)
            .unwrap_or_else(|| format!("`{text}` is not a rate of tc(8) above 0; write for example 10mbit"))
    };
    let (number, unit) = number(text).ok_or_else(refuse)?;
    let unit = unit.to_ascii_lowercase();
    let (prefix, bits) = match unit.strip_suffix("bps") {
        Some(prefix) => (prefix, 8.0),
        None if unit.is_empty() => ("", 1.0),
        None => (unit.strip_suffix("bit").ok_or_else(refuse)?, 1.0),
    };
    let factor = match prefix {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => f64::from(1 << 10),
        "mi" => f64::from(1 << 20),
        "gi" => f64::from(1 << 30),
        "ti" => 1024.0 * f64::from(1 << 30),
        _ => return Err(refuse()),
    };
    let bit = (number * bits * factor).round();
    if (1.0..=FASTEST).contains(&bit) { Ok(Rate::from_bit(bit as u64)) } else { Err(refuse()) }
}

/// A time with its unit: versions of tc(8) disagree on a number without one.
pub(super) fn time(text: &str) -> Result<Span, String> {
    let refuse = || {
        variable(text).unwrap_or_else(|| {
            format!("`{text}` is not a time of an hour at most with its unit; write for example 10ms")
        })
    };
    let (number, unit) = number(text).ok_or_else(refuse)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" => 1e9,
        "ms" | "msec" | "msecs" => 1e6,
        "us" | "usec" | "usecs" | "µs" => 1e3,
        "ns" | "nsec" | "nsecs" => 1.0,
        "" if number == 0.0 => 1.0,
        _ => return Err(refuse()),
    };
    let nanos = (number * factor).round();
    if nanos <= LONGEST { Ok(Span::from_nanos(nanos as u64)) } else { Err(refuse()) }
}

/// A size in bytes; `k`, `m` and `g` are powers of 1024.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let refuse = || {
        variable(text)
            .unwrap_or_else(|| format!("`{text}` is not a size of tc(8) above 0; write for example 4mb"))
    };
    let (number, unit) = number(text).ok_or_else(refuse)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => f64::from(1 << 10),
        "m" | "mb" => f64::from(1 << 20),
        "g" | "gb" => f64::from(1 << 30),
        "kbit" => 125.0,
        "mbit" => 125e3,
        "gbit" => 125e6,
        _ => return Err(refuse()),
    };
    let bytes = (number * factor).round();
    if (1.0..=1e12).contains(&bytes) { Ok(bytes as u64) } else { Err(refuse()) }
}

/// A percentage between 0 and 100, with or without its sign.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let value = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    value.filter(|percent| (0.0..=100.0).contains(percent)).ok_or_else(|| {
        variable(text)
            .unwrap_or_else(|| format!("`{text}` is not between 0% and 100%; write for example 0.5%"))
    })
}

/// A whole number up to `most`.
pub(super) fn count(text: &str, most: u64) -> Result<u64, String> {
    text.parse().ok().filter(|count| *count <= most).ok_or_else(|| {
        variable(text).unwrap_or_else(|| format!("`{text}` is not a whole number of at most {most}"))
    })
}

/// A percentage as TOML, for example `"0.5%"`, without rounding errors of computed ones.
pub(super) fn percent_text(percent: f64) -> String {
    format!("\"{}%\"", (percent * 1e9).round() / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_of_tc_are_read_as_its_manual_says() {
        let bits = |text: &str| rate(text).map(Rate::as_bit);
        assert_eq!(bits("1.5mbit"), Ok(1_500_000));
        assert_eq!((bits("1Kibit"), bits("8000"), bits("2kbps")), (Ok(1_024), Ok(8_000), Ok(16_000)));
        let nanos = |text: &str| time(text).map(Span::as_nanos);
        assert_eq!(
            (nanos("1.5s"), nanos("10msecs"), nanos("7us")),
            (Ok(1_500_000_000), Ok(10_000_000), Ok(7_000))
        );
        assert_eq!((size("32kbit"), size("10k"), size("1514")), (Ok(4_000), Ok(10_240), Ok(1_514)));
        assert_eq!((percent("0.3%"), percent("5")), (Ok(0.3), Ok(5.0)));
        for wrong in ["", "10m", "nan", "inf", "1e9ms", "-1ms", "2h", "3601s"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "0bit", "0.1bit", "50%", "1xbit", "1ebit", "9999999tbit", "-1mbit", "..bit"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        assert!(time("100").unwrap_err().contains("with its unit"));
        assert!(rate("$UP").unwrap_err().contains("variable"));
        assert_eq!(percent_text(0.1 + 0.2), "\"0.3%\"");
    }
}
