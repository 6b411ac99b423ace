//! Scatter plots, with intervals and lines of ideal values.

use plotters::prelude::*;

use super::canvas::{GRID, LEVEL, WIDTH, axis_end, axis_text, colour, draw, px, tick};
use super::drawing::Drawing;

/// Marks in the colour of one key.
pub struct Scatter {
    /// A colour's index.
    pub key: usize,
    /// (x, y, half of the interval).
    pub marks: Vec<(f64, f64, Option<f64>)>,
    /// Ideal values, ascending in x: a dashed line.
    pub ideal: Vec<(f64, f64)>,
}

const HEIGHT: u32 = 230;

/// Draws `all` into one plane from the origin, with the name of the horizontal axis below.
#[must_use]
pub fn scatter(all: &[Scatter], x_label: &str) -> Drawing {
    let marks = || all.iter().flat_map(|one| &one.marks);
    let ideal = || all.iter().flat_map(|one| &one.ideal);
    let x_max = marks().map(|m| m.0).chain(ideal().map(|p| p.0)).fold(0.0, f64::max);
    let y_max = marks().map(|m| m.1 + m.2.unwrap_or(0.0)).chain(ideal().map(|p| p.1)).fold(0.0, f64::max);
    draw(WIDTH, HEIGHT, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(px(8))
            .margin_right(px(16))
            .set_label_area_size(LabelAreaPosition::Left, px(38))
            .set_label_area_size(LabelAreaPosition::Bottom, px(40))
            .build_cartesian_2d(0.0..axis_end(x_max * 1.03), 0.0..axis_end(y_max * 1.05))?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(6)
            .y_labels(5)
            .x_desc(x_label)
            .axis_desc_style(axis_text())
            .bold_line_style(GRID.stroke_width(px(1)))
            .light_line_style(TRANSPARENT)
            .axis_style(GRID)
            .set_all_tick_mark_size(px(3))
            .label_style(axis_text())
            .x_label_formatter(&|x| tick(*x))
            .y_label_formatter(&|y| tick(*y))
            .draw()?;
        for one in all {
            chart.draw_series([PathElement::new(one.ideal.clone(), LEVEL.stroke_width(3))])?;
        }
        for one in all {
            let ink = colour(one.key);
            for &(x, y, half) in &one.marks {
                if let Some(half) = half {
                    let interval = [(x, (y - half).max(0.0)), (x, y + half)];
                    chart.draw_series([PathElement::new(interval, ink.stroke_width(px(1)))])?;
                }
                chart.draw_series([Circle::new((x, y), px(4), ink.filled())])?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_is_a_dot_and_every_interval_a_line() {
        let one = Scatter {
            key: 0,
            marks: vec![(1.0, 0.1, Some(0.01)), (2.0, 0.2, None), (3.0, 0.3, Some(0.02))],
            ideal: vec![(1.0, 0.1), (3.0, 0.3)],
        };
        let svg = scatter(&[one], "tickets").svg();
        assert_eq!(svg.matches("<circle").count(), 3);
        let lines =
            |colour: &str| svg.lines().filter(|l| l.starts_with("<polyline") && l.contains(colour)).count();
        // Two intervals in the colour of the key, one dashed line.
        assert_eq!((lines("#0072B2"), lines("#30353B")), (2, 1));
        assert!(svg.contains("tickets"));
    }

    #[test]
    fn nothing_to_draw_is_still_a_figure() {
        assert!(scatter(&[], "x").svg().starts_with("<svg"));
    }
}
