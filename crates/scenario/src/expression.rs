//! Formulas of `i`, the number of a flow or host in its group: `"100 * i"`, `"2ms * i"`, and names such as
//! `"l{i}"`.
//!
//! A formula is parsed once per group and evaluated once per member. Operators: `+ - * / %`, `min(a, b)`,
//! `max(a, b)`,
//! `floor(a)`, `ceil(a)`. They round alike on every platform, so a scenario is the same scenario everywhere.

use std::fmt;

use exmex::{BinOp, Express, FlatEx, MakeOperators, Operator};

/// Longest formula (chosen: a line; it bounds the work and the nesting of the parser).
const LONGEST: usize = 120;

#[derive(Clone, Debug)]
struct Operators;

impl MakeOperators<f64> for Operators {
    fn make<'a>() -> Vec<Operator<'a, f64>> {
        let bin = |apply, prio| BinOp { apply, prio, is_commutative: false };
        vec![
            Operator::make_bin_unary("+", bin(|a, b| a + b, 0), |a| a),
            Operator::make_bin_unary("-", bin(|a, b| a - b, 1), |a: f64| -a),
            Operator::make_bin("*", bin(|a, b| a * b, 2)),
            Operator::make_bin("/", bin(|a, b| a / b, 3)),
            Operator::make_bin("%", bin(f64::rem_euclid, 3)),
            Operator::make_bin("min", bin(f64::min, 4)),
            Operator::make_bin("max", bin(f64::max, 4)),
            Operator::make_unary("floor", f64::floor),
            Operator::make_unary("ceil", f64::ceil),
        ]
    }
}

/// Turns a quantity such as `2ms` into base units.
type ReadUnit<'a> = &'a dyn Fn(&str) -> Result<u64, String>;

/// A formula of `i` whose value is a number, or a quantity in its base unit.
#[derive(Clone, Debug)]
pub(crate) struct Formula {
    text: String,
    plain: FlatEx<f64, Operators>,
    /// The same with every quantity doubled: a formula that adds a bare number to a quantity does not double
    /// with it.
    doubled: Option<FlatEx<f64, Operators>>,
}

impl Formula {
    /// Whether `text` mentions `i`, and so is to be read as a formula.
    pub(crate) fn is_one(text: &str) -> bool {
        let letter = |c: Option<&u8>| c.is_some_and(|c| c.is_ascii_alphanumeric() || *c == b'_');
        let bytes = text.as_bytes();
        (0..bytes.len()).any(|at| {
            let before = at.checked_sub(1).and_then(|before| bytes.get(before));
            bytes[at] == b'i' && !letter(before) && !letter(bytes.get(at + 1))
        })
    }

    /// Reads a formula. `unit` turns a quantity such as `2ms` into base units; without it, quantities are
    /// refused.
    pub(crate) fn parse(text: &str, unit: Option<ReadUnit<'_>>) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("a formula may have at most {LONGEST} characters"));
        }
        let (plain, _) = in_base_units(text, unit, 1)?;
        let (doubled, quantities) = in_base_units(text, unit, 2)?;
        if unit.is_some() && quantities == 0 {
            return Err(format!("`{text}` has no unit"));
        }
        let doubled = if quantities > 0 { Some(compile(text, &doubled)?) } else { None };
        Ok(Self { text: text.to_owned(), plain: compile(text, &plain)?, doubled })
    }

    /// Its value for member `i`.
    pub(crate) fn at(&self, i: u64) -> Result<f64, String> {
        // Numbers of members stay below 2^53, where f64 is exact.
        let evaluate =
            |compiled: &FlatEx<f64, Operators>| compiled.eval_relaxed(&[i as f64]).unwrap_or(f64::NAN);
        let value = evaluate(&self.plain);
        if !value.is_finite() {
            return Err(format!("`{}` has no value for i = {i}", self.text));
        }
        if let Some(doubled) = &self.doubled
            && evaluate(doubled) != 2.0 * value
        {
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

/// The formula with each quantity replaced by `times` its number of base units, and how many there were.
fn in_base_units(text: &str, unit: Option<ReadUnit<'_>>, times: u64) -> Result<(String, usize), String> {
    let mut out = String::new();
    let mut quantities = 0;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        if !is_number(c) {
            // Words such as `max` or `i2` are taken whole: digits in them are no numbers.
            let word = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let end = word.max(c.len_utf8());
            out.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        let number = rest.find(|c| !is_number(c)).unwrap_or(rest.len());
        let letters = rest[number..].find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len() - number);
        let literal = &rest[..number + letters];
        rest = &rest[number + letters..];
        if letters == 0 {
            out.push_str(literal);
            continue;
        }
        let Some(unit) = unit else {
            return Err(format!("`{literal}` has a unit, but a number without a unit is expected"));
        };
        let base = unit(literal)?.checked_mul(times).ok_or_else(|| format!("`{literal}` is too large"))?;
        out.push_str(&base.to_string());
        quantities += 1;
    }
    Ok((out, quantities))
}

fn compile(text: &str, base_units: &str) -> Result<FlatEx<f64, Operators>, String> {
    let known = "+ - * / %, min(a, b), max(a, b), floor(a), ceil(a)";
    let fail =
        || format!("`{text}` is not a formula of `i`; it may use numbers, `i`, parentheses and {known}");
    if !base_units.is_ascii() || base_units.contains(['{', '}']) {
        return Err(fail());
    }
    let compiled = FlatEx::<f64, Operators>::parse(base_units).map_err(|_| fail())?;
    if compiled.var_names().iter().any(|name| name != "i") {
        return Err(fail());
    }
    Ok(compiled)
}

/// A name with formulas in braces: `"l{i}"`, `"in{ceil(i / 10)}"`.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
    Literal(String),
    Number(Box<Formula>),
    /// `{i}` itself, by far the most frequent.
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
        assert!(value(&"(".repeat(200), 1).is_err());
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]
        #[test]
        fn nothing_panics(text in "[i0-9.+*/%(),minaxfloorce -]{0,16}", other in "\\PC{0,12}", i in 0u64..20) {
            for text in [text, other] {
                let _ = Formula::parse(&text, Some(&span)).map(|formula| formula.at(i));
                let _ = value(&text, i);
                let _ = Pattern::parse(&text).map(|pattern| pattern.at(i));
            }
        }
    }
}
