//! Formulas of `i`, the number of a flow or host in its group: `"100 * i"`, `"2ms * i"`, and names such as
//! `"l{i}"`.
//!
//! A formula is parsed once per group and evaluated once per member. Operators, from the loosest: `+ -`, then
//! `* / %`, both from the left; a leading `-`; `^`, from the right, so `-2 ^ 2` is -4. Functions: `min(a, b)`,
//! `max(a, b)`, `floor(a)`, `ceil(a)`. `a % b` is never negative. All of them give the same bits on every
//! platform.

use std::fmt;

use winnow::ModalResult;
use winnow::Parser;
use winnow::ascii::space0;
use winnow::combinator::{Infix, Prefix, delimited, dispatch, expression, fail, preceded};
use winnow::error::{ErrMode, ParserError};
use winnow::stream::Stream;
use winnow::token::{any, take_while};

/// Longest formula in bytes (chosen: a line; it also bounds the recursion of the parser).
const MAX_LENGTH: usize = 120;

/// Converts a quantity, for example `2ms`, to base units.
type ReadUnit<'a> = &'a dyn Fn(&str) -> Result<u64, String>;

/// A formula of `i` whose value is a number, or a quantity in its base unit.
#[derive(Clone, Debug)]
pub(crate) struct Formula {
    text: String,
    root: Node,
    has_quantities: bool,
}

/// A syntax tree.
#[derive(Clone, Debug)]
enum Node {
    Number(f64),
    /// In base units.
    Quantity(f64),
    Index,
    Unary(fn(f64) -> f64, Box<Self>),
    Binary(fn(f64, f64) -> f64, Box<[Self; 2]>),
}

impl Node {
    /// The value for member `i`, with every quantity multiplied by `scale`.
    fn value(&self, i: f64, scale: f64) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Quantity(base_units) => base_units * scale,
            Self::Index => i,
            Self::Unary(apply, operand) => apply(operand.value(i, scale)),
            Self::Binary(apply, operands) => {
                let [a, b] = &**operands;
                apply(a.value(i, scale), b.value(i, scale))
            }
        }
    }

    fn has_quantities(&self) -> bool {
        match self {
            Self::Quantity(_) => true,
            Self::Number(_) | Self::Index => false,
            Self::Unary(_, operand) => operand.has_quantities(),
            Self::Binary(_, operands) => operands.iter().any(Self::has_quantities),
        }
    }
}

impl Formula {
    /// Whether `text` mentions `i`, so that it is a formula.
    pub(crate) fn is_one(text: &str) -> bool {
        let letter = |c: Option<&u8>| c.is_some_and(|c| c.is_ascii_alphanumeric() || *c == b'_');
        let bytes = text.as_bytes();
        (0..bytes.len()).any(|at| {
            let before = at.checked_sub(1).and_then(|before| bytes.get(before));
            bytes[at] == b'i' && !letter(before) && !letter(bytes.get(at + 1))
        })
    }

    /// Reads a formula. `unit` converts a quantity, for example `2ms`, to base units; without it, quantities
    /// are refused.
    pub(crate) fn parse(text: &str, unit: Option<ReadUnit<'_>>) -> Result<Self, String> {
        if text.len() > MAX_LENGTH {
            return Err(format!("a formula may have at most {MAX_LENGTH} characters"));
        }
        let mut parsed = |input: &mut &str| sum(input, unit);
        let root = parsed.parse(text).map_err(|error| match error.into_inner() {
            Refused::Quantity(message) => message,
            Refused::Syntax => format!(
                "`{text}` is not a formula of `i`; it may use numbers, `i`, parentheses and + - * / % ^, \
                 min(a, b), max(a, b), floor(a), ceil(a)"
            ),
        })?;
        let has_quantities = root.has_quantities();
        if unit.is_some() && !has_quantities {
            return Err(format!("`{text}` has no unit"));
        }
        Ok(Self { text: text.to_owned(), root, has_quantities })
    }

    /// The value for member `i`.
    pub(crate) fn at(&self, i: u64) -> Result<f64, String> {
        // Numbers of members stay below 2^53, where f64 is exact.
        let index = i as f64;
        let value = self.root.value(index, 1.0);
        if !value.is_finite() {
            return Err(format!("`{}` has no value for i = {i}", self.text));
        }
        // A formula that adds a bare number to a quantity does not double with its quantities.
        if self.has_quantities && self.root.value(index, 2.0) != 2.0 * value {
            return Err(format!("`{}` mixes numbers with a unit and numbers without one", self.text));
        }
        Ok(value)
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a text is not a formula.
#[derive(Debug)]
enum Refused {
    Syntax,
    /// The message about a quantity.
    Quantity(String),
}

impl<I: Stream> ParserError<I> for Refused {
    type Inner = Self;

    fn from_input(_: &I) -> Self {
        Self::Syntax
    }

    fn into_inner(self) -> Result<Self, Self> {
        Ok(self)
    }
}

type Parsed<T> = ModalResult<T, Refused>;

/// Binding powers.
const SUM: i64 = 10;
const PRODUCT: i64 = 20;
const SIGN: i64 = 30;
const POWER: i64 = 40;

fn sum(input: &mut &str, unit: Option<ReadUnit<'_>>) -> Parsed<Node> {
    fn binary(apply: fn(f64, f64) -> f64, a: Node, b: Node) -> Parsed<Node> {
        Ok(Node::Binary(apply, Box::new([a, b])))
    }
    let operand = |input: &mut &str| operand(input, unit);
    expression(delimited(space0, operand, space0))
        .prefix(dispatch! { preceded(space0, any);
            '+' => Prefix(SIGN, |_: &mut _, a| Ok(a)),
            '-' => Prefix(SIGN, |_: &mut _, a| Ok(Node::Unary(|a| -a, Box::new(a)))),
            _ => fail,
        })
        .infix(dispatch! { any;
            '+' => Infix::Left(SUM, |_: &mut _, a, b| binary(|a, b| a + b, a, b)),
            '-' => Infix::Left(SUM, |_: &mut _, a, b| binary(|a, b| a - b, a, b)),
            '*' => Infix::Left(PRODUCT, |_: &mut _, a, b| binary(|a, b| a * b, a, b)),
            '/' => Infix::Left(PRODUCT, |_: &mut _, a, b| binary(|a, b| a / b, a, b)),
            '%' => Infix::Left(PRODUCT, |_: &mut _, a, b| binary(f64::rem_euclid, a, b)),
            '^' => Infix::Right(POWER, |_: &mut _, a, b| binary(libm::pow, a, b)),
            _ => fail,
        })
        .parse_next(input)
}

/// A number, a quantity, `i`, a call or a sum in parentheses.
fn operand(input: &mut &str, unit: Option<ReadUnit<'_>>) -> Parsed<Node> {
    let rest = *input;
    match rest.chars().next() {
        Some('(') => delimited('(', |input: &mut _| sum(input, unit), ')').parse_next(input),
        Some(c) if c.is_ascii_digit() || c == '.' => literal(input, unit),
        _ => {
            let word = take_while(1.., |c: char| c.is_ascii_alphanumeric() || c == '_').parse_next(input)?;
            let one: fn(f64) -> f64 = match word {
                "i" => return Ok(Node::Index),
                "floor" => f64::floor,
                "ceil" => f64::ceil,
                "min" => return pair(f64::min, input, unit),
                "max" => return pair(f64::max, input, unit),
                _ => return Err(ErrMode::Cut(Refused::Syntax)),
            };
            let argument =
                delimited((space0, '('), |input: &mut _| sum(input, unit), ')').parse_next(input)?;
            Ok(Node::Unary(one, Box::new(argument)))
        }
    }
}

/// The arguments of a function of two numbers.
fn pair(apply: fn(f64, f64) -> f64, input: &mut &str, unit: Option<ReadUnit<'_>>) -> Parsed<Node> {
    let mut argument = |input: &mut &str| sum(input, unit);
    let a = preceded((space0, '('), argument.by_ref()).parse_next(input)?;
    let b = delimited(',', argument, ')').parse_next(input)?;
    Ok(Node::Binary(apply, Box::new([a, b])))
}

fn literal(input: &mut &str, unit: Option<ReadUnit<'_>>) -> Parsed<Node> {
    let number = take_while(1.., |c: char| c.is_ascii_digit() || c == '.');
    let letters = take_while(0.., |c: char| c.is_ascii_alphabetic());
    let ((number, letters), whole) = (number, letters).with_taken().parse_next(input)?;
    if letters.is_empty() {
        return number.parse().map(Node::Number).map_err(|_| ErrMode::Cut(Refused::Syntax));
    }
    let base_units = match unit {
        Some(unit) => unit(whole),
        None => Err(format!("`{whole}` has a unit, but a number without a unit is expected")),
    };
    // Exact below 2^53 base units.
    base_units.map(|n| Node::Quantity(n as f64)).map_err(|message| ErrMode::Cut(Refused::Quantity(message)))
}

/// A name with formulas in braces: `"l{i}"`, `"in{ceil(i / 10)}"`.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
    Literal(String),
    Number(Box<Formula>),
    /// `{i}` itself, by far the most frequent form.
    Index,
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let Some(close) = rest[open..].find('}') else {
                return Err(format!("`{text}` has a `{{` without its `}}`"));
            };
            let inside = rest[open + 1..open + close].trim();
            if open > 0 {
                pieces.push(Piece::Literal(rest[..open].to_owned()));
            }
            pieces.push(match inside {
                "i" => Piece::Index,
                _ => Piece::Number(Box::new(Formula::parse(inside, None)?)),
            });
            rest = &rest[open + close + 1..];
        }
        if !rest.is_empty() || pieces.is_empty() {
            pieces.push(Piece::Literal(rest.to_owned()));
        }
        Ok(Self(pieces))
    }

    /// The name for member `i`.
    pub(crate) fn at(&self, i: u64) -> Result<String, String> {
        let mut name = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => name.push_str(text),
                Piece::Index => name.push_str(&i.to_string()),
                Piece::Number(formula) => {
                    let value = formula.at(i)?;
                    // 2^53: beyond it an f64 may not be the whole number that it prints as.
                    if value < 0.0 || value.fract() != 0.0 || value > 9_007_199_254_740_992.0 {
                        return Err(format!(
                            "`{{{}}}` is {value} for i = {i}, not a whole number",
                            formula.text
                        ));
                    }
                    name.push_str(&(value as u64).to_string());
                }
            }
        }
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use apportion_core::units::Span;
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    use super::*;

    fn span(text: &str) -> Result<u64, String> {
        text.parse().map(Span::as_nanos).map_err(|error| error.to_string())
    }

    fn value(text: &str, i: u64) -> Result<f64, String> {
        Formula::parse(text, None)?.at(i)
    }

    #[test]
    fn formulas_follow_the_usual_precedence() {
        assert_eq!(value("100 * i", 3), Ok(300.0));
        assert_eq!(value("1 + 2 * i", 3), Ok(7.0));
        assert_eq!(value("10 - i - 2", 3), Ok(5.0));
        assert_eq!(value("12 / i / 2", 3), Ok(2.0));
        assert_eq!(value("12 / i * 2", 3), Ok(8.0));
        assert_eq!(value("-i + 5", 3), Ok(2.0));
        assert_eq!(value("(i - 1) % 2", 4), Ok(1.0));
        assert_eq!(value("max(i, 2) + min(i, 2)", 7), Ok(9.0));
        assert_eq!(value("ceil(i / 10) + floor(i / 10)", 15), Ok(3.0));
        for (text, expected) in [
            ("6 * 5 % 4", 2.0),
            ("7 % 4 * 2", 6.0),
            ("8 / 4 % 3", 2.0),
            ("2 * 9 / 4", 4.5),
            ("1 - 2 + 3", 2.0),
            ("1 - (2 + 3)", -4.0),
            ("-7 % 4", 1.0),
            ("2 * -3 + 1", -5.0),
            ("2 - -3", 5.0),
            ("-2 ^ 2", -4.0),
            ("(-2) ^ 2", 4.0),
            ("2 ^ 3 ^ 2", 512.0),
            ("2 ^ -1 * 6", 3.0),
            ("3 * 2 ^ i", 24.0),
        ] {
            assert_eq!(value(text, 3), Ok(expected), "{text}");
        }
    }

    #[test]
    fn quantities_keep_their_unit() {
        let formula = |text| Formula::parse(text, Some(&span));
        assert_eq!(formula("2ms * i").unwrap().at(3), Ok(6e6));
        assert_eq!(formula("1ms + 0.5us * (i - 1)").unwrap().at(3), Ok(1.001e6));
        assert_eq!(
            formula("1ms + i").unwrap().at(3),
            Err("`1ms + i` mixes numbers with a unit and numbers without one".into())
        );
        assert_eq!(formula("3 * i").unwrap_err(), "`3 * i` has no unit");
        assert!(formula("3Mbit * i").unwrap_err().contains("unknown unit `Mbit`"));
    }

    #[test]
    fn what_is_no_formula_is_refused() {
        for text in ["i +", "i j", "x * i", "2 * {i}", "((i)", "", "i i", "1.2.3 * i", "min(i)", "i(2)"] {
            assert!(value(text, 1).is_err(), "{text}: {:?}", value(text, 1));
        }
        assert_eq!(value("1 / (i - 1)", 1), Err("`1 / (i - 1)` has no value for i = 1".into()));
        for repeated in ["(", "-", "min(", "1 + ", "2 ^ "] {
            assert!(value(&repeated.repeat(100_000), 1).unwrap_err().contains("at most"));
            assert!(value(&repeated.repeat(MAX_LENGTH / repeated.len()), 1).is_err());
        }
        let nested = format!("{}i{}", "(".repeat(59), ")".repeat(59));
        assert_eq!(value(&nested, 4), Ok(4.0));
    }

    #[test]
    fn a_formula_is_known_by_its_i() {
        for text in ["i", "2*i", "min(i,3)", "2ms * i"] {
            assert!(Formula::is_one(text), "{text}");
        }
        for text in ["2min", "pareto", "5", "x.i2", "Mbit"] {
            assert!(!Formula::is_one(text), "{text}");
        }
    }

    #[test]
    fn names_count() {
        let name = |text, i| Pattern::parse(text)?.at(i);
        assert_eq!(name("l{i}", 12), Ok("l12".into()));
        assert_eq!(name("in{ceil(i / 10)}-{i}", 11), Ok("in2-11".into()));
        assert_eq!(name("left", 1), Ok("left".into()));
        assert_eq!(name("l{i / 2}", 1), Err("`{i / 2}` is 0.5 for i = 1, not a whole number".into()));
        assert_eq!(name("l{i", 1), Err("`l{i` has a `{` without its `}`".into()));
    }

    /// Products from the left, then sums from the left.
    fn by_hand(first: f64, rest: &[(char, f64)]) -> f64 {
        let mut terms = vec![('+', first)];
        for &(operator, operand) in rest {
            let last = &mut terms.last_mut().unwrap().1;
            match operator {
                '*' => *last *= operand,
                '/' => *last /= operand,
                '%' => *last = last.rem_euclid(operand),
                sign => terms.push((sign, operand)),
            }
        }
        terms[1..].iter().fold(terms[0].1, |sum, (sign, term)| match sign {
            '+' => sum + term,
            _ => sum - term,
        })
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn operators_bind_as_by_hand(
            first in 1u32..100,
            rest in proptest::collection::vec((proptest::sample::select(vec!['+', '-', '*', '/', '%']), 1u32..100), 0..12),
        ) {
            let text = rest.iter().fold(first.to_string(), |text, (operator, n)| format!("{text} {operator} {n}"));
            let rest: Vec<_> = rest.iter().map(|&(operator, n)| (operator, f64::from(n))).collect();
            let expected = by_hand(f64::from(first), &rest);
            prop_assert_eq!(value(&text, 1), Ok(expected), "{}", text);
        }
    }

    proptest! {
        #![proptest_config(cases(3_000))]
        #[test]
        fn nothing_panics(text in "[i0-9.+*/%^(),minaxfloorce -]{0,16}", other in "\\PC{0,12}", i in 0u64..20) {
            for text in [text, other] {
                let _ = Formula::parse(&text, Some(&span)).map(|formula| formula.at(i));
                let _ = value(&text, i);
                let _ = Pattern::parse(&text).map(|pattern| pattern.at(i));
            }
        }
    }
}
