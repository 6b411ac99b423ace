//! The assertions of a script: a small part of Python over the fields of `struct tcp_info`.
//!
//! Statements are `assert`, `print` and assignments; expressions have numbers, names, arithmetic, comparisons, `and`,
//! `or` and `not`. Messages of assertions are not evaluated. Names that a block assigns stay for later blocks.

use std::collections::BTreeMap;
use std::fmt;

/// The deepest nesting of expressions.
const DEEPEST: u32 = 64;

/// The end of a block of code.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// An assertion does not hold. Its text, and the names in it with their values.
    False(String, String),
    /// A name without a value.
    Unknown(String),
    /// Something that the evaluator does not have.
    Foreign(String),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::False(text, values) => write!(f, "{text}: {values}"),
            Self::Unknown(name) => write!(f, "`{name}` has no value"),
            Self::Foreign(what) => write!(f, "`{what}` is not evaluated"),
        }
    }
}

/// The values of names.
pub type Names = BTreeMap<String, f64>;

/// Runs a block of code over `info`, the fields at present, and `names`, which earlier blocks have assigned.
/// Returns the number of assertions that hold.
///
/// # Errors
/// The first assertion that does not hold, or what cannot be evaluated.
pub fn run(code: &str, info: &Names, names: &mut Names) -> Result<u32, Stop> {
    let mut held = 0;
    for statement in statements(code) {
        let (word, rest) = first_word(&statement);
        if word == "print" || word == "pass" {
            continue;
        }
        if word == "assert" {
            let mut expression = Expression::new(rest, info, names);
            let value = expression.whole(true)?;
            if value == 0.0 {
                return Err(Stop::False(expression.read().to_owned(), expression.values()));
            }
            held += 1;
        } else {
            assign(&statement, word, rest, info, names)?;
        }
    }
    Ok(held)
}

/// `name = value`, `name += value` and the like.
fn assign(statement: &str, name: &str, rest: &str, info: &Names, names: &mut Names) -> Result<(), Stop> {
    let foreign = || Stop::Foreign(statement.chars().take(40).collect());
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let sign = rest.chars().next().filter(|c| "+-*/".contains(*c) && rest[1..].starts_with('='));
    let value = match sign {
        Some(_) => &rest[2..],
        None => rest.strip_prefix('=').filter(|value| !value.starts_with('=')).ok_or_else(foreign)?,
    };
    if !is_name {
        return Err(foreign());
    }
    let value = Expression::new(value, info, names).whole(false)?;
    let value = match sign {
        None => value,
        Some(sign) => {
            let before = *names.get(name).ok_or_else(|| Stop::Unknown(name.to_owned()))?;
            match sign {
                '+' => before + value,
                '-' => before - value,
                '*' => before * value,
                _ => before / value,
            }
        }
    };
    names.insert(name.to_owned(), value);
    Ok(())
}

/// The statements of a block: without comments, and with continued lines joined.
fn statements(code: &str) -> Vec<String> {
    let (mut all, mut one, mut quote, mut depth) = (Vec::new(), String::new(), None, 0_u32);
    let mut letters = code.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            (_, Some(mark)) => {
                quote = Some(mark).filter(|&mark| mark != letter);
                one.push(letter);
            }
            ('#', None) => while letters.next_if(|&c| c != '\n').is_some() {},
            ('\\', None) if letters.peek() == Some(&'\n') => {
                letters.next();
            }
            ('\n' | ';', None) if depth == 0 => all.push(std::mem::take(&mut one)),
            _ => {
                match letter {
                    '\'' | '"' => quote = Some(letter),
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                one.push(letter);
            }
        }
    }
    all.push(one);
    all.into_iter().map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect()
}

fn first_word(statement: &str) -> (&str, &str) {
    let end = statement.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(statement.len());
    (&statement[..end], statement[end..].trim_start())
}

/// An expression under evaluation, by recursive descent. Truth is 1 and 0.
struct Expression<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    info: &'a Names,
    names: &'a Names,
    /// The names read.
    read: Vec<(&'a str, f64)>,
}

/// Operators of two values from the loosest on; `and`, `or`, `not` and comparisons are apart.
const ARITHMETIC: &[&[&str]] = &[&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "//", "/", "%"]];

impl<'a> Expression<'a> {
    const fn new(text: &'a str, info: &'a Names, names: &'a Names) -> Self {
        Self { text, at: 0, depth: 0, info, names, read: Vec::new() }
    }

    /// The text evaluated so far.
    fn read(&self) -> &'a str {
        self.text[..self.at].trim()
    }

    fn values(&self) -> String {
        let shown: Vec<String> = self.read.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        shown.join(", ")
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn take(&mut self, sign: &str) -> bool {
        self.skip();
        let is_next = self.rest().starts_with(sign);
        self.at += if is_next { sign.len() } else { 0 };
        is_next
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.skip();
        let is_next = first_word(self.rest()).0 == word;
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }

    fn foreign(&self) -> Stop {
        Stop::Foreign(self.rest().chars().take(40).collect())
    }

    /// The value of all of the text, or of what comes before a message.
    fn whole(&mut self, may_have_message: bool) -> Result<f64, Stop> {
        let value = self.or()?;
        let end = self.at;
        self.skip();
        if self.rest().is_empty() || may_have_message && self.rest().starts_with(',') {
            self.at = end;
            return Ok(value);
        }
        Err(self.foreign())
    }

    fn or(&mut self) -> Result<f64, Stop> {
        let mut value = self.and()?;
        while self.take_word("or") {
            let other = self.and()?;
            value = if value == 0.0 { other } else { value };
        }
        Ok(value)
    }

    fn and(&mut self) -> Result<f64, Stop> {
        let mut value = self.not()?;
        while self.take_word("and") {
            let other = self.not()?;
            value = if value == 0.0 { value } else { other };
        }
        Ok(value)
    }

    fn not(&mut self) -> Result<f64, Stop> {
        let mut negated = None;
        while self.take_word("not") {
            negated = Some(!negated.unwrap_or(false));
        }
        let value = self.comparison()?;
        Ok(negated.map_or(value, |negated| f64::from(u8::from((value != 0.0) != negated))))
    }

    /// One comparison or a chain, as `1 < x <= 2`.
    fn comparison(&mut self) -> Result<f64, Stop> {
        let mut left = self.arithmetic(0)?;
        let mut holds = None;
        loop {
            let signs = ["==", "!=", "<=", ">=", "<", ">"];
            self.skip();
            let Some(sign) = signs.into_iter().find(|sign| self.rest().starts_with(sign)) else { break };
            self.at += sign.len();
            let right = self.arithmetic(0)?;
            let now = match sign {
                "==" => left == right,
                "!=" => left != right,
                "<=" => left <= right,
                ">=" => left >= right,
                "<" => left < right,
                _ => left > right,
            };
            holds = Some(holds.unwrap_or(true) && now);
            left = right;
        }
        Ok(holds.map_or(left, |holds| f64::from(u8::from(holds))))
    }

    fn arithmetic(&mut self, level: usize) -> Result<f64, Stop> {
        let Some(signs) = ARITHMETIC.get(level) else { return self.unary() };
        let mut left = self.arithmetic(level + 1)?;
        loop {
            self.skip();
            let Some(sign) = signs.iter().find(|sign| self.rest().starts_with(**sign)) else {
                return Ok(left);
            };
            self.at += sign.len();
            let right = self.arithmetic(level + 1)?;
            left = apply(sign, left, right).ok_or_else(|| self.foreign())?;
        }
    }

    fn unary(&mut self) -> Result<f64, Stop> {
        let mut negative = false;
        loop {
            if self.take("-") {
                negative = !negative;
            } else if !self.take("+") {
                break;
            }
        }
        let value = self.atom()?;
        Ok(if negative { -value } else { value })
    }

    fn atom(&mut self) -> Result<f64, Stop> {
        if self.take("(") {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(self.foreign());
            }
            let value = self.or()?;
            self.depth -= 1;
            return if self.take(")") { Ok(value) } else { Err(self.foreign()) };
        }
        self.skip();
        let end = self.rest().find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'));
        let word = &self.rest()[..end.unwrap_or(self.rest().len())];
        let value = if word.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            let hexadecimal = word.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16).ok());
            let number = hexadecimal.map_or_else(|| word.parse().ok(), |number| number.map(|n| n as f64));
            number.ok_or_else(|| self.foreign())?
        } else if word.is_empty() {
            return Err(self.foreign());
        } else {
            let constant = |name| CONSTANTS.iter().find(|(known, _)| *known == name).map(|&(_, value)| value);
            let known = self.names.get(word).or_else(|| self.info.get(word)).copied();
            let value = known.or_else(|| constant(word)).ok_or_else(|| Stop::Unknown(word.to_owned()))?;
            if known.is_some() && !self.read.contains(&(word, value)) {
                self.read.push((word, value));
            }
            value
        };
        self.at += word.len();
        Ok(value)
    }
}

/// The states of the congestion control, as `tcpi_ca_state` numbers them.
pub const CONSTANTS: &[(&str, f64)] = &[
    ("True", 1.0),
    ("False", 0.0),
    ("TCP_CA_Open", 0.0),
    ("TCP_CA_Disorder", 1.0),
    ("TCP_CA_CWR", 2.0),
    ("TCP_CA_Recovery", 3.0),
    ("TCP_CA_Loss", 4.0),
];

/// The value of `left sign right`; none where Python has none either.
fn apply(sign: &str, left: f64, right: f64) -> Option<f64> {
    let bits = |value: f64| (value.fract() == 0.0 && value.abs() < 2.0_f64.powi(53)).then_some(value as i64);
    let whole = |act: fn(i64, i64) -> Option<i64>| Some(act(bits(left)?, bits(right)?)? as f64);
    match sign {
        "+" => Some(left + right),
        "-" => Some(left - right),
        "*" => Some(left * right),
        "/" => (right != 0.0).then(|| left / right),
        "//" => (right != 0.0).then(|| (left / right).floor()),
        "%" => (right != 0.0).then(|| left - right * (left / right).floor()),
        "|" => whole(|a, b| Some(a | b)),
        "&" => whole(|a, b| Some(a & b)),
        "^" => whole(|a, b| Some(a ^ b)),
        "<<" => whole(|a, b| a.checked_shl(u32::try_from(b).ok().filter(|&b| b < 32)?)),
        _ => whole(|a, b| a.checked_shr(u32::try_from(b).ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: &str) -> Result<u32, Stop> {
        let info = Names::from([("tcpi_snd_cwnd".to_owned(), 10.0), ("tcpi_ca_state".to_owned(), 3.0)]);
        run(code, &info, &mut Names::new())
    }

    #[test]
    fn assertions_are_evaluated_as_python_does() {
        for (code, held) in [
            ("assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd", 1),
            ("assert tcpi_ca_state == TCP_CA_Recovery, 'state: %d; #' % (tcpi_ca_state)", 1),
            ("print(tcpi_snd_cwnd); assert 9 < tcpi_snd_cwnd <= 0xa # a comment, assert False", 1),
            ("cwnd = 8; cwnd += 2\nassert cwnd == tcpi_snd_cwnd and not cwnd > 10", 1),
            ("assert 2 + 3 * 4 == 14 and (2 + 3) * 4 == 20 and -7 // 2 == -4 and -7 % 3 == 2", 1),
            ("assert tcpi_snd_cwnd == 1 \\\n or tcpi_snd_cwnd == 10", 1),
            ("assert 1 << 4 | 1 == 17 or False\nassert 6 & 3 == 2", 2),
        ] {
            assert_eq!(check(code), Ok(held), "{code}");
        }
    }

    #[test]
    fn what_does_not_hold_is_shown_with_its_values() {
        let stop = check("assert tcpi_snd_cwnd == 11, 'text'").unwrap_err();
        assert_eq!(stop.to_string(), "tcpi_snd_cwnd == 11: tcpi_snd_cwnd = 10");
        assert_eq!(check("assert tcpi_none"), Err(Stop::Unknown("tcpi_none".to_owned())));
        for code in
            ["import os", "x += 1", "assert 1 / 0", "assert (1", "assert f(1)", "assert 1 2", "for x in y: z"]
        {
            assert!(matches!(check(code), Err(Stop::Foreign(_) | Stop::Unknown(_))), "{code}");
        }
        let deep = format!("assert {}1{}", "(".repeat(10_000), ")".repeat(10_000));
        assert!(matches!(check(&deep), Err(Stop::Foreign(_))));
    }
}
