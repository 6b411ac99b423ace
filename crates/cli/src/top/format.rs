//! Numbers in the units of reports, in a bounded number of characters, and texts in a bounded width.

use ratatui::text::Span;

/// The sign for what is not known.
pub const UNKNOWN: &str = "-";

/// A rate in bytes per second.
pub fn rate(bytes: f64) -> String {
    match bytes * 8.0 {
        bits @ ..1e6 => format!("{:.1} kb/s", bits / 1e3),
        bits @ ..999.995e6 => format!("{:.2} Mb/s", bits / 1e6),
        bits @ ..999.995e9 => format!("{:.2} Gb/s", bits / 1e9),
        bits @ ..999.995e12 => format!("{:.2} Tb/s", bits / 1e12),
        _ => ">999 Tb/s".to_owned(),
    }
}

/// A short time in seconds.
pub fn time(seconds: f64) -> String {
    match seconds {
        ..9.99 => format!("{:.2} ms", seconds * 1e3),
        ..1e5 => format!("{seconds:.1} s"),
        _ => ">100000 s".to_owned(),
    }
}

/// The length of a run, in seconds.
pub fn duration(seconds: f64) -> String {
    // A float beyond the integers becomes the largest one.
    let whole = seconds.min(1e12) as u64;
    let (days, clock) = (whole / 86_400, whole % 86_400);
    let clock = |hours| format!("{hours}:{:02}:{:02}", clock / 60 % 60, clock % 60);
    match seconds {
        ..600.0 => format!("{seconds:.1} s"),
        ..86_400.0 => clock(whole / 3_600),
        _ => format!("{days} d {}", clock(whole % 86_400 / 3_600)),
    }
}

/// A number of packets or flows.
pub fn count(number: f64) -> String {
    match number {
        ..1e7 => format!("{number:.0}"),
        ..1e9 => format!("{:.1} M", number / 1e6),
        ..1e12 => format!("{:.1} G", number / 1e9),
        _ => ">1000 G".to_owned(),
    }
}

/// A weight.
pub fn weight(number: f64) -> String {
    let text = format!("{number}");
    if text.len() <= 7 { text } else { count(number) }
}

/// A fraction.
pub fn percent(part: f64) -> String {
    match part {
        ..99.9995 => format!("{:.1} %", part * 1e2),
        _ => ">9999 %".to_owned(),
    }
}

/// Cells of a bar between its brackets.
pub const BAR: usize = 10;

/// A fraction as a bar of this many cells, with a sign at its end if it is more than 1.
pub fn bar(part: f64, cells: usize) -> String {
    let full = ((part * cells as f64).round() as usize).min(cells);
    let end = if part > 1.0 + 0.5 / cells as f64 { '>' } else { ']' };
    format!("[{}{}{end}", "|".repeat(full), " ".repeat(cells - full))
}

/// Columns of a terminal that a text takes.
pub fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// A text in at most this many columns, with a sign where it is cut.
pub fn clip(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut cut = String::new();
    for c in text.chars() {
        cut.push(c);
        if width(&cut) + 1 > columns {
            cut.pop();
            break;
        }
    }
    if columns > 0 {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_units_of_reports() {
        assert_eq!(
            [0.0, 64_000.0, 300_000.0, 125e6].map(rate),
            ["0.0 kb/s", "512.0 kb/s", "2.40 Mb/s", "1.00 Gb/s"]
        );
        assert_eq!([0.0, 0.031_05, 9.0, 12.0].map(time), ["0.00 ms", "31.05 ms", "9000.00 ms", "12.0 s"]);
        assert_eq!([12.34, 7_384.0, 90_061.0].map(duration), ["12.3 s", "2:03:04", "1 d 1:01:01"]);
        assert_eq!([12.0, 9_999_999.0, 12_345_678.0].map(count), ["12", "9999999", "12.3 M"]);
        assert_eq!([0.0, 0.826, 12.0].map(percent), ["0.0 %", "82.6 %", "1200.0 %"]);
        assert_eq!(
            [0.0, 0.5, 1.0, 1.04, 3.0].map(|part| bar(part, 4)),
            ["[    ]", "[||  ]", "[||||]", "[||||]", "[||||>"]
        );
    }

    #[test]
    fn no_number_takes_more_than_a_column_has() {
        for number in [
            0.0,
            1e3,
            124_999_999.9,
            1e9,
            124_999_999_999.9,
            1e14,
            1e15,
            f64::MAX,
            999_999.96,
            9.999_999,
            99.9999,
        ] {
            for (text, most) in [
                (rate(number), 11),
                (time(number), 10),
                (count(number), 8),
                (percent(number), 8),
                (duration(number), 20),
            ] {
                assert!(text.len() <= most, "{text}");
            }
            assert_eq!(bar(number, BAR).len(), BAR + 2);
        }
    }

    #[test]
    fn texts_are_cut_by_columns_with_a_sign() {
        assert_eq!(clip("bottleneck", 10), "bottleneck");
        assert_eq!(clip("bottleneck", 5), "bott…");
        // Each of these takes two columns.
        assert_eq!(clip("漢字漢字", 5), "漢字…");
        assert_eq!((clip("漢字", 1), clip("x", 0)), ("…".to_owned(), String::new()));
    }
}
