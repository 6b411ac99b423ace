//! The values of a figure beside its shapes, as JSON in the page: a script reads them aloud, zooms in and saves
//! them. `docs/decisions/013-values-in-figures.md` has the format.

use std::fmt::Write;

/// The axes and series of a figure, with their true values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Data {
    /// Left, top, right and bottom of the plot in drawn pixels.
    pub(super) area: [i32; 4],
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// The axis along which the marks of a series follow each other.
    pub(super) along: Along,
    /// Names of the values that a mark has beside its place.
    pub(super) fields: Vec<String>,
    pub(super) series: Vec<Series>,
    /// Whether the marks of one row stand end to end.
    pub(super) is_stacked: bool,
    /// Dashed lines across the plot: height, and start and end unless it is the whole width.
    pub(super) levels: Vec<(f64, Option<(f64, f64)>)>,
    /// The end of the shaded part, which begins at the left.
    pub(super) warm_up: f64,
    /// Places of thin vertical lines.
    pub(super) events: Vec<f64>,
    /// A note about what is left out; empty if nothing is.
    pub(super) note: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Along {
    X,
    Y,
}

/// An axis. A name ends with its unit, after a comma.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) name: String,
    pub(super) scale: Scale,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scale {
    Numbers {
        low: f64,
        high: f64,
        is_log: bool,
    },
    /// Names with their places in drawn pixels; values are indices.
    Names(Vec<(String, i32)>),
}

impl Axis {
    pub(super) fn numbers(name: impl Into<String>, low: f64, high: f64) -> Self {
        Self { name: name.into(), scale: Scale::Numbers { low, high, is_log: false } }
    }

    pub(super) fn log(name: impl Into<String>, low: f64, high: f64) -> Self {
        Self { name: name.into(), scale: Scale::Numbers { low, high, is_log: true } }
    }

    pub(super) fn names(name: impl Into<String>, names: Vec<(String, i32)>) -> Self {
        Self { name: name.into(), scale: Scale::Names(names) }
    }
}

/// The marks of one name and colour.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Series {
    pub(super) key: Option<usize>,
    pub(super) name: String,
    /// The first cell of rows about it, if that is not its name.
    pub(super) row: String,
    pub(super) x: Vec<f64>,
    pub(super) y: Vec<f64>,
    /// Values of each field, NaN where there is none.
    pub(super) more: Vec<Vec<f64>>,
    /// Distance of its marks from the middle of their rows, in drawn pixels.
    pub(super) shift: i32,
    /// Names of marks, if they have any.
    pub(super) names: Vec<String>,
}

impl Series {
    pub(super) fn of(key: Option<usize>) -> Self {
        Self { key, ..Self::default() }
    }

    /// Adds a mark.
    pub(super) fn add<const N: usize>(&mut self, x: f64, y: f64, more: [f64; N]) {
        self.x.push(x);
        self.y.push(y);
        self.more.resize_with(N, Vec::new);
        self.more.iter_mut().zip(more).for_each(|(field, value)| field.push(value));
    }
}

/// A series for each key of these, in order of keys.
pub(super) fn by_key(keys: impl Iterator<Item = usize>) -> Vec<Series> {
    let mut keys: Vec<usize> = keys.collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().map(|key| Series::of(Some(key))).collect()
}

/// The place of the series with this key.
pub(super) fn place(series: &[Series], key: usize) -> usize {
    series.iter().position(|of| of.key == Some(key)).unwrap_or_default()
}

/// Significant digits of values, and of places on the axis along which marks follow each other.
const DIGITS: usize = 5;
const PLACE_DIGITS: usize = 7;
/// Arrays of more values than this are whole numbers of a power of ten, of which the largest value has this many digits: the height
/// of a figure is 200 pixels.
const PACKED_FROM: usize = 40;
const PACKED_DIGITS: i32 = 4;
/// A run of this many equal steps is written as its start and step.
const REGULAR: usize = 8;

impl Data {
    pub(super) fn new(area: [i32; 4], x: Axis, y: Axis, along: Along, fields: &[&str]) -> Self {
        Self {
            area,
            x,
            y,
            along,
            fields: fields.iter().map(|&field| field.to_owned()).collect(),
            series: Vec::new(),
            is_stacked: false,
            levels: Vec::new(),
            warm_up: 0.0,
            events: Vec::new(),
            note: String::new(),
        }
    }

    /// Names the axis of values and the series without a name, by their keys; one without a key has the name of the quantity.
    pub(super) fn name(&mut self, quantity: &str, names: &[String]) {
        let axis = if self.along == Along::X { &mut self.y } else { &mut self.x };
        if axis.name.is_empty() {
            quantity.clone_into(&mut axis.name);
        }
        for series in self.series.iter_mut().filter(|series| series.name.is_empty()) {
            if let Some(name) = series.key.and_then(|key| names.get(key)) {
                name.clone_into(&mut series.name);
            }
        }
    }

    /// The data as JSON that may stand in a `script` element.
    pub(super) fn json(&self) -> String {
        let [left, top, right, bottom] = self.area;
        let along = if self.along == Along::X { 'x' } else { 'y' };
        let mut out = format!(
            "{{\"area\":[{left},{top},{right},{bottom}],\"along\":\"{along}\",\"x\":{},\"y\":{}",
            axis(&self.x),
            axis(&self.y)
        );
        if !self.fields.is_empty() {
            let _ = write!(out, ",\"fields\":{}", texts(&self.fields));
        }
        if self.is_stacked {
            out.push_str(",\"stacked\":true");
        }
        if !self.levels.is_empty() {
            let level = |&(at, span): &(f64, Option<(f64, f64)>)| match span {
                Some((from, to)) => numbers(&[at, from, to], PLACE_DIGITS),
                None => numbers(&[at], PLACE_DIGITS),
            };
            let levels: Vec<String> = self.levels.iter().map(level).collect();
            let _ = write!(out, ",\"levels\":[{}]", levels.join(","));
        }
        if self.warm_up > 0.0 {
            let _ = write!(out, ",\"warmUp\":{}", number(self.warm_up, PLACE_DIGITS));
        }
        if !self.events.is_empty() {
            let _ = write!(out, ",\"events\":{}", numbers(&self.events, PLACE_DIGITS));
        }
        if !self.note.is_empty() {
            let _ = write!(out, ",\"note\":{}", text(&self.note));
        }
        let series: Vec<String> = self.series.iter().map(|of| self.series(of)).collect();
        let _ = write!(out, ",\"series\":[{}]}}", series.join(",\n"));
        out
    }

    fn series(&self, of: &Series) -> String {
        let mut out = format!("{{\"name\":{}", text(&of.name));
        if let Some(key) = of.key {
            let _ = write!(out, ",\"key\":{key}");
        }
        if !of.row.is_empty() {
            let _ = write!(out, ",\"row\":{}", text(&of.row));
        }
        if of.shift != 0 {
            let _ = write!(out, ",\"shift\":{}", of.shift);
        }
        if !of.names.is_empty() {
            let _ = write!(out, ",\"names\":{}", texts(&of.names));
        }
        let (x, y) = match self.along {
            Along::X => (places(&of.x), values(&of.y)),
            Along::Y => (numbers(&of.x, DIGITS), places(&of.y)),
        };
        let _ = write!(out, ",\"x\":{x},\"y\":{y}");
        if of.more.iter().flatten().any(|value| value.is_finite()) {
            let more: Vec<String> = of.more.iter().map(|field| values(field)).collect();
            let _ = write!(out, ",\"more\":[{}]", more.join(","));
        }
        out.push('}');
        out
    }
}

fn axis(axis: &Axis) -> String {
    let name = text(&axis.name);
    match &axis.scale {
        Scale::Numbers { low, high, is_log } => {
            let log = if *is_log { ",\"log\":true" } else { "" };
            format!("{{\"name\":{name},\"ends\":{}{log}}}", numbers(&[*low, *high], PLACE_DIGITS))
        }
        Scale::Names(all) => {
            let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
            let at: Vec<String> = all.iter().map(|(_, at)| at.to_string()).collect();
            format!("{{\"name\":{name},\"names\":{},\"at\":[{}]}}", texts(&names), at.join(","))
        }
    }
}

/// Places as an array, or as the start, the step and the number of those in equal steps, and the array of the rest.
fn places(all: &[f64]) -> String {
    let [first, second, ..] = *all else { return numbers(all, PLACE_DIGITS) };
    // Differences of rounded numbers have errors in their last digits.
    let step = ((second - first) * 1e9).round() / 1e9;
    let is_regular = |(k, x): &(usize, &f64)| (first + *k as f64 * step - **x).abs() < 1e-6 * step.abs();
    let count = all.iter().enumerate().take_while(is_regular).count();
    if count < REGULAR || step <= 0.0 {
        return numbers(all, PLACE_DIGITS);
    }
    let (start, rest) = (number(first, PLACE_DIGITS), numbers(&all[count..], PLACE_DIGITS));
    format!("{{\"from\":{start},\"step\":{},\"count\":{count},\"rest\":{rest}}}", number(step, PLACE_DIGITS))
}

/// Values as an array, or as whole numbers of 10^`e`, each less the one before if that is shorter.
fn values(all: &[f64]) -> String {
    let most = all.iter().copied().filter(|x| x.is_finite()).fold(0.0_f64, |most, x| most.max(x.abs()));
    if all.len() <= PACKED_FROM || most == 0.0 {
        return numbers(all, DIGITS);
    }
    // The exponent as it is written: logarithms may differ from system to system.
    let scientific = format!("{most:.*e}", PACKED_DIGITS as usize - 1);
    let exponent: i32 = scientific.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or_default();
    let e = exponent + 1 - PACKED_DIGITS;
    // A literal is the same on every system, and a power may not be.
    let unit: f64 = format!("1e{e}").parse().unwrap_or(1.0);
    let whole = |x: f64| x.is_finite().then(|| (x / unit).round() as i64);
    let whole: Vec<Option<i64>> = all.iter().map(|&x| whole(x)).collect();
    let text = |all: &mut dyn Iterator<Item = Option<i64>>| {
        all.map(|x| x.map_or_else(|| "null".to_owned(), |x| x.to_string())).collect::<Vec<_>>().join(",")
    };
    let plain = text(&mut whole.iter().copied());
    let mut before = 0;
    let differences = text(&mut whole.iter().map(|&x| x.map(|x| x - std::mem::replace(&mut before, x))));
    let (name, shorter) = if differences.len() < plain.len() { ("d", differences) } else { ("n", plain) };
    format!("{{\"e\":{e},\"{name}\":[{shorter}]}}")
}

fn numbers(all: &[f64], digits: usize) -> String {
    let all: Vec<String> = all.iter().map(|x| number(*x, digits)).collect();
    format!("[{}]", all.join(","))
}

/// A number with at most these significant digits; `null` unless it is finite. Correctly rounded decimals are the same on every
/// system.
fn number(x: f64, digits: usize) -> String {
    if !x.is_finite() {
        return "null".to_owned();
    }
    let rounded: f64 = format!("{x:.*e}", digits - 1).parse().unwrap_or(x);
    if rounded == 0.0 { "0".to_owned() } else { rounded.to_string() }
}

fn texts(all: &[impl AsRef<str>]) -> String {
    let all: Vec<String> = all.iter().map(|one| text(one.as_ref())).collect();
    format!("[{}]", all.join(","))
}

/// A JSON string. `<` is escaped, so that no text ends the element around it.
fn text(of: &str) -> String {
    serde_json::Value::from(of).to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_significant_digits_and_no_others() {
        let all = [0.0, -0.0, 1.0, 1_234.567, 0.000_123_456_7, 1e6, f64::NAN, 2.0 / 3.0];
        assert_eq!(numbers(&all, 5), "[0,0,1,1234.6,0.00012346,1000000,null,0.66667]");
    }

    #[test]
    fn equal_steps_are_a_start_and_a_step() {
        let bins: Vec<f64> = (0..10).map(|k| 0.3 + 0.5 * f64::from(k)).chain([5.1]).collect();
        assert_eq!(places(&bins), "{\"from\":0.3,\"step\":0.5,\"count\":10,\"rest\":[5.1]}");
        assert_eq!(places(&[1.0, 2.0, 4.0]), "[1,2,4]");
        assert_eq!(places(&[1.0; 9]), "[1,1,1,1,1,1,1,1,1]");
        assert_eq!(places(&[]), "[]");
    }

    #[test]
    fn many_values_are_whole_numbers_or_their_differences() {
        let noise: Vec<f64> = (0..41).map(|k| if k % 2 == 0 { 0.1234 } else { 2.5 }).collect();
        assert!(values(&noise).starts_with("{\"e\":-3,\"n\":[123,2500,123,"), "{}", values(&noise));
        let mut rising: Vec<f64> = (0..50).map(|k| 1e6 + 1e4 * f64::from(k)).collect();
        rising[2] = f64::NAN;
        assert!(values(&rising).starts_with("{\"e\":3,\"d\":[1000,10,null,20,10,"), "{}", values(&rising));
        assert_eq!(values(&[0.0; 41]), numbers(&[0.0; 41], 5));
        assert_eq!(values(&[1.5, 2.0]), "[1.5,2]");
    }

    #[test]
    fn names_cannot_end_the_element() {
        assert_eq!(text("</script>\"\u{1}"), r#""\u003c/script>\"\u0001""#);
    }
}
