//! Floats, and JSON values of any shape. Only these two write ECMAScript's shortest number text.

#[cfg(feature = "float")]
mod float {
    use crate::canonical::default::{numbers, own_values};
    use crate::canonical::{Canonical, Shape, Shapes, Sink, float};

    own_values! {
        [] f32 as float;
        [] f64 as float;
    }

    numbers! {
        f32 as float;
        f64 as float;
    }

    impl Canonical<float> for f64 {
        fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
            sink.put(b"\"");
            // ECMAScript's words for what is no number, and no sign on zero, come with its text.
            sink.put(ryu_js::Buffer::new().format(*self).as_bytes());
            sink.put(b"\"");
        }

        fn shape(_: &mut Shapes) -> Shape {
            Shape::leaf("float")
        }
    }

    /// Widened, which is exact: the text is the one of the same number in 64 bits.
    impl Canonical<float> for f32 {
        fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
            f64::from(*self).write(sink);
        }

        fn shape(shapes: &mut Shapes) -> Shape {
            f64::shape(shapes)
        }
    }
}

#[cfg(feature = "serde_json")]
mod json {
    use serde_json::{Number, Value};

    use crate::canonical::collection::{write_array, write_map};
    use crate::canonical::default::own_values;
    use crate::canonical::{Canonical, MapKey, Shape, Shapes, Sink, none};

    own_values!([] Value as none;);

    impl Canonical for Value {
        const NULLABLE: bool = true;

        fn write<S: Sink + ?Sized>(&self, sink: &mut S) {
            match self {
                Self::Null => sink.put(b"null"),
                Self::Bool(value) => value.write(sink),
                Self::Number(number) => write_number(number, sink),
                Self::String(text) => <str as Canonical>::write(text, sink),
                Self::Array(items) => write_array(items.iter(), sink),
                // In order, whatever the map has: `serde_json/preserve_order` can be switched on from anywhere.
                Self::Object(members) => write_map(|| members.iter(), sink),
            }
        }

        fn shape(_: &mut Shapes) -> Shape {
            Shape::leaf("json")
        }
    }

    /// An integer below 2^64 has its exact digits, whether it came as an integer or as a double; another number the
    /// text of its double.
    fn write_number<S: Sink + ?Sized>(number: &Number, sink: &mut S) {
        const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
        if let Some(integer) = number.as_u64() {
            write_integer(false, integer, sink);
        } else if let Some(integer) = number.as_i64() {
            write_integer(integer < 0, integer.unsigned_abs(), sink);
        } else if let Some(double) = number.as_f64().filter(|double| double.is_finite()) {
            if double.fract() == 0.0 && double.abs() < TWO_TO_64 {
                write_integer(double < 0.0, double.abs() as u64, sink);
            } else {
                sink.put(ryu_js::Buffer::new().format_finite(double).as_bytes());
            }
        } else {
            write_beyond_doubles(&number.to_string(), sink);
        }
    }

    fn write_integer<S: Sink + ?Sized>(negative: bool, magnitude: u64, sink: &mut S) {
        if negative && magnitude > 0 {
            sink.put(b"-");
        }
        magnitude.with_text(|digits| sink.put(digits.as_bytes()));
    }

    /// A number that only `serde_json/arbitrary_precision` can hold, as its shortest decimal: `DeEXP`.
    fn write_beyond_doubles<S: Sink + ?Sized>(text: &str, sink: &mut S) {
        let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (negative, number) = number.strip_prefix('-').map_or((false, number), |number| (true, number));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_end_matches('0');
        let moved = (digits.len() - significant.len()) as i128 - fraction.len() as i128;
        if negative {
            sink.put(b"-");
        }
        sink.put(significant.trim_start_matches('0').as_bytes());
        sink.put(b"e");
        match exponent.parse::<i64>() {
            Ok(exponent) => sink.put((i128::from(exponent) + moved).to_string().as_bytes()),
            Err(_) => write_sum(exponent, moved, sink),
        }
    }

    /// Adds to digits of any number, since the exponent of a JSON number has no end. They say more than any `moved` can
    /// take away: below zero, they would be the exponent of a number that is zero as a double.
    fn write_sum<S: Sink + ?Sized>(digits: &str, moved: i128, sink: &mut S) {
        let mut carry = moved;
        let mut sum = Vec::with_capacity(digits.len() + 1);
        for digit in digits.bytes().rev().filter(u8::is_ascii_digit) {
            let place = carry + i128::from(digit - b'0');
            sum.push(b'0' + place.rem_euclid(10) as u8);
            carry = place.div_euclid(10);
        }
        while carry > 0 {
            sum.push(b'0' + (carry % 10) as u8);
            carry /= 10;
        }
        let zeros = sum.iter().rev().take_while(|digit| **digit == b'0').count();
        sum.truncate(sum.len() - zeros);
        sum.reverse();
        sink.put(&sum);
    }
}
