//! The reader of the language: text to a [`Script`].
//!
//! A script is options, and then events; the end of a line has no meaning. The time and the memory that reading
//! takes grow with the text, which has at most [`MOST`] bytes.

use std::fmt;

use apportion_core::Ecn;
use apportion_core::units::Span;

use crate::script::{Call, EcnField, Event, Packet, Script, TcpFlags, TcpOption, What, When};

/// The largest script in bytes.
pub const MOST: usize = 1 << 20;
/// The longest time in seconds.
const LONGEST: u64 = 3_600;
/// The deepest nesting of brackets in the arguments of a call.
const DEEPEST: usize = 32;

/// Why a text is no script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// What was expected there.
    pub expected: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected {}", self.line, self.expected)
    }
}

impl std::error::Error for ParseError {}

/// Reads a script.
///
/// # Errors
/// The first place that the language does not allow.
pub fn parse(text: &str) -> Result<Script, ParseError> {
    let mut reader = Reader { text, at: 0, line: 1 };
    if text.len() > MOST {
        return reader.fail(&format!("at most {MOST} bytes"));
    }
    let mut script = Script::default();
    reader.skip();
    while reader.take("--") {
        let option = reader.until_space();
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        script.options.push((name.to_owned(), value.to_owned()));
        reader.skip();
    }
    while !reader.is_at_end() {
        script.events.push(reader.event()?);
        reader.skip();
    }
    Ok(script)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Reader<'a> {
    fn fail<T>(&self, expected: &str) -> Result<T, ParseError> {
        Err(ParseError { line: self.line, expected: expected.to_owned() })
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    fn next(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Moves over `len` bytes, which end at the border of a character.
    fn advance(&mut self, len: usize) -> &'a str {
        let taken = &self.rest()[..len];
        self.line += taken.matches('\n').count();
        self.at += len;
        taken
    }

    /// Takes `word` if it is next.
    fn take(&mut self, word: &str) -> bool {
        let is_next = self.rest().starts_with(word);
        if is_next {
            self.advance(word.len());
        }
        is_next
    }

    fn require(&mut self, word: &str) -> Result<(), ParseError> {
        self.skip();
        if self.take(word) { Ok(()) } else { self.fail(&format!("`{word}`")) }
    }

    fn take_while(&mut self, test: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        self.advance(rest.find(|c| !test(c)).unwrap_or(rest.len()))
    }

    fn until_space(&mut self) -> &'a str {
        self.take_while(|c| !c.is_whitespace())
    }

    /// The text up to `end`, which it moves over.
    fn until(&mut self, end: &str) -> Result<&'a str, ParseError> {
        let Some(len) = self.rest().find(end) else { return self.fail(&format!("`{end}` at the end")) };
        let taken = self.advance(len);
        self.advance(end.len());
        Ok(taken)
    }

    /// Skips spaces and comments.
    fn skip(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if self.rest().starts_with("//") {
                self.take_while(|c| c != '\n');
            } else if self.rest().starts_with("/*") {
                let rest = self.rest();
                self.advance(rest.find("*/").map_or(rest.len(), |end| end + 2));
            } else {
                return;
            }
        }
    }

    fn word(&mut self) -> &'a str {
        self.take_while(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    fn number<T: TryFrom<u64>>(&mut self, name: &str) -> Result<T, ParseError> {
        self.skip();
        let digits = self.take_while(|c| c.is_ascii_digit());
        match digits.parse::<u64>().ok().and_then(|number| T::try_from(number).ok()) {
            Some(number) => Ok(number),
            None => self.fail(&format!("{name}: a number in its range")),
        }
    }

    // -----------------------------------------------------------------------------------------
    // Events

    fn event(&mut self) -> Result<Event, ParseError> {
        let line = self.line;
        let at = if self.next() == Some('`') { When::Untimed } else { self.when()? };
        self.skip();
        let what = self.what()?;
        let is_range = matches!(at, When::Any | When::Between { to: Some(_), .. });
        if is_range && !matches!(what, What::Expect(_) | What::Call(_) | What::Foreign(_)) {
            return self.fail("one time, since only packets of the endpoint may have a range");
        }
        Ok(Event { line, at, what })
    }

    fn when(&mut self) -> Result<When, ParseError> {
        if self.take("*") {
            return Ok(When::Any);
        }
        let relative = self.take("+");
        let from = self.seconds()?;
        self.skip();
        // `...` is the time at which a blocking call returns.
        let to = if self.take("~") || self.take("...") {
            self.skip();
            let _ = self.take("+");
            Some(self.seconds()?)
        } else {
            None
        };
        Ok(When::Between { relative, from, to })
    }

    /// A time in seconds, to a microsecond.
    fn seconds(&mut self) -> Result<Span, ParseError> {
        let whole = self.take_while(|c| c.is_ascii_digit());
        let mut micros =
            whole.parse::<u64>().ok().filter(|&seconds| seconds <= LONGEST).map(|s| s * 1_000_000);
        let mut after = self.rest().chars().skip(1);
        if self.next() == Some('.') && after.next().is_some_and(|c| c.is_ascii_digit()) {
            self.advance(1);
            let digits = self.take_while(|c| c.is_ascii_digit());
            let fraction = format!("{digits:0<6}")[..6].parse::<u64>().ok();
            let whole = if whole.is_empty() { Some(0) } else { micros };
            micros = whole.zip(fraction).map(|(whole, fraction)| whole + fraction);
        }
        match micros {
            Some(micros) => Ok(Span::from_micros(micros)),
            None => self.fail(&format!("a time in seconds, at most {LONGEST}")),
        }
    }

    fn what(&mut self) -> Result<What, ParseError> {
        if self.take("`") {
            return Ok(What::Shell(self.until("`")?.to_owned()));
        }
        if self.take("%{") {
            return Ok(What::Code(self.until("}%")?.to_owned()));
        }
        if self.take("<") {
            return self.packet(true);
        }
        if self.take(">") {
            return self.packet(false);
        }
        let name = self.word();
        if name.is_empty() {
            return self.fail("`<`, `>`, a call, `%{` or a shell command after a time");
        }
        self.call(name)
    }

    // -----------------------------------------------------------------------------------------
    // Packets

    fn packet(&mut self, inbound: bool) -> Result<What, ParseError> {
        self.skip();
        let ecn = self.ip_part()?;
        self.skip();
        for kind in ["icmp", "udp", "gre", "mpls", "ipv4", "ipv6", "psp", "ether"] {
            if self.rest().starts_with(kind) {
                self.take_while(|c| c != '\n');
                return Ok(What::Foreign(kind.to_owned()));
            }
        }
        if self.next().is_some_and(|c| c.is_ascii_digit()) {
            let _: u16 = self.number("a port")?;
            self.require(">")?;
            let _: u16 = self.number("a port")?;
            self.skip();
        }
        let flags = self.flags()?;
        let seq: u32 = self.number("a sequence number")?;
        self.require(":")?;
        let end: u32 = self.number("a sequence number")?;
        self.require("(")?;
        let len: u16 = self.number("a length of at most 65535")?;
        self.require(")")?;
        if end != seq.wrapping_add(len.into()) {
            return self.fail("an end that is the sequence number plus the length");
        }
        let mut packet = Packet { ecn, flags, seq, len, ack: None, window: None, options: Some(Vec::new()) };
        self.fields(&mut packet)?;
        if inbound && packet.window.is_none() {
            return self.fail("`win`, without which no packet can be injected");
        }
        if inbound && packet.options.is_none() {
            return self.fail("the options of an injected packet");
        }
        Ok(if inbound { What::Inject(packet) } else { What::Expect(packet) })
    }

    /// What follows the length of a segment.
    fn fields(&mut self, packet: &mut Packet) -> Result<(), ParseError> {
        loop {
            self.skip();
            if self.take("ack ") {
                packet.ack = Some(self.number("an acknowledgment")?);
            } else if self.take("win ") {
                packet.window = Some(self.number("a window of at most 65535")?);
            } else if self.take("urg ") {
                let _: u16 = self.number("an urgent pointer")?;
                packet.flags.other = true;
            } else if self.take("<") {
                packet.options = self.options()?;
            } else {
                return Ok(());
            }
        }
    }

    fn ip_part(&mut self) -> Result<Option<EcnField>, ParseError> {
        let Some(end) = self.next().and_then(|c| match c {
            '[' => Some("]"),
            '(' => Some(")"),
            _ => None,
        }) else {
            return Ok(None);
        };
        self.advance(1);
        let mut ecn = None;
        let words = self.until(end)?.split([',', ' ']).filter(|word| !word.is_empty());
        for word in words {
            ecn = match word {
                "noecn" => Some(EcnField::Is(Ecn::NotEct)),
                "ect0" => Some(EcnField::Is(Ecn::Ect0)),
                "ect1" => Some(EcnField::Is(Ecn::Ect1)),
                "ce" => Some(EcnField::Is(Ecn::Ce)),
                "ect01" => Some(EcnField::Capable),
                _ => ecn,
            };
        }
        Ok(ecn)
    }

    fn flags(&mut self) -> Result<TcpFlags, ParseError> {
        let word = self.take_while(|c| "FSRPEWAU.-01234567".contains(c));
        if word.is_empty() {
            return self.fail("flags: letters of FSRPEWAU, `.` or `-`");
        }
        let mut flags = TcpFlags::default();
        for letter in word.chars() {
            match letter {
                'F' => flags.fin = true,
                'S' => flags.syn = true,
                'R' => flags.rst = true,
                '.' => flags.ack = true,
                'A' => flags.ace |= 4,
                'W' => flags.ace |= 2,
                'E' => flags.ace |= 1,
                '0'..='7' => flags.ace = letter as u8 - b'0',
                'U' => flags.other = true,
                _ => {}
            }
        }
        Ok(flags)
    }

    /// The options up to `>`; `None` for any.
    fn options(&mut self) -> Result<Option<Vec<TcpOption>>, ParseError> {
        self.skip();
        if self.take("...") {
            self.require(">")?;
            return Ok(None);
        }
        let mut options = Vec::new();
        for option in self.until(">")?.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            match read_option(option) {
                Some(read) => options.extend(read),
                None => return self.fail(&format!("a TCP option, not `{option}`")),
            }
        }
        Ok(Some(options))
    }

    // -----------------------------------------------------------------------------------------
    // Calls

    fn call(&mut self, name: &str) -> Result<What, ParseError> {
        self.require("(")?;
        let args = self.arguments()?;
        self.require("=")?;
        self.skip();
        let result = if self.take("...") {
            None
        } else {
            let negative = self.take("-");
            let (hexadecimal, word) = (self.take("0x"), self.word());
            let number = i64::from_str_radix(word, if hexadecimal { 16 } else { 10 });
            let Ok(number) = number else { return self.fail("the result of a call: a number or `...`") };
            Some(if negative { -number } else { number })
        };
        self.skip();
        if self.next().is_some_and(|c| c.is_ascii_uppercase()) {
            self.word();
            self.skip();
        }
        if self.take("(") {
            self.until(")")?;
        }
        Ok(What::Call(Call { name: name.to_owned(), args, result }))
    }

    /// The arguments up to the closing bracket.
    fn arguments(&mut self) -> Result<Vec<String>, ParseError> {
        let (mut args, mut arg, mut depth) = (Vec::new(), String::new(), 0);
        loop {
            let Some(letter) = self.next() else { return self.fail("`)` at the end of the arguments") };
            self.advance(letter.len_utf8());
            match letter {
                '"' => {
                    let quoted = self.quoted()?;
                    arg.push_str(quoted);
                    continue;
                }
                '(' | '[' | '{' => depth += 1,
                ')' if depth == 0 => {
                    if !arg.trim().is_empty() {
                        args.push(arg.trim().to_owned());
                    }
                    return Ok(args);
                }
                ')' | ']' | '}' if depth > 0 => depth -= 1,
                ',' if depth == 0 => {
                    args.push(arg.trim().to_owned());
                    arg.clear();
                    continue;
                }
                _ => {}
            }
            if depth > DEEPEST {
                return self.fail("fewer brackets within brackets");
            }
            arg.push(letter);
        }
    }

    /// The rest of a quoted text, with its closing mark.
    fn quoted(&mut self) -> Result<&'a str, ParseError> {
        let rest = self.rest();
        let mut escaped = false;
        for (at, letter) in rest.char_indices() {
            match letter {
                '"' if !escaped => return Ok(self.advance(at + 1)),
                '\\' if !escaped => escaped = true,
                _ => escaped = false,
            }
        }
        self.fail("`\"` at the end of a text")
    }
}

/// One option of a segment; nothing for one without a meaning.
fn read_option(text: &str) -> Option<Vec<TcpOption>> {
    let mut words = text.split_whitespace();
    let name = words.next()?;
    let rest: Vec<&str> = words.collect();
    let one = |option| Some(vec![option]);
    match (name, rest.as_slice()) {
        ("nop" | "eol", []) => Some(Vec::new()),
        ("mss", [size]) => one(TcpOption::Mss(size.parse().ok()?)),
        ("sackOK", []) => one(TcpOption::SackOk),
        ("wscale", [shift]) => one(TcpOption::WindowScale(shift.parse().ok()?)),
        ("TS", ["val", value, "ecr", echo]) => {
            one(TcpOption::Timestamp(value.parse().ok()?, echo.parse().ok()?))
        }
        ("sack", blocks) if !blocks.is_empty() => {
            let block = |text: &&str| {
                let (from, to) = text.split_once(':')?;
                Some((from.parse().ok()?, to.parse().ok()?))
            };
            one(TcpOption::Sack(blocks.iter().map(block).collect::<Option<_>>()?))
        }
        ("ECN", counters) => one(TcpOption::Counters(counters.join(" "))),
        _ if name.chars().all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c)) => {
            one(TcpOption::Other(name.to_owned()))
        }
        _ => None,
    }
}
