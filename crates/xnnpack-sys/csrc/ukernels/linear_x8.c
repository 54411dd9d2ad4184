// Finds linear forms of functions of bytes, which XNNPACK computes by tables. Without AVX512-VBMI a table of 256 bytes takes 16 shuffles
// for each vector. Two products of 16 bits take a quarter of the time.
//
// For a factor, each result bounds the constant of the form from below and from above. A constant within all bounds gives all results,
// which need not be compared. The places of the two bounds that exclude each other tell whether the factor is too small or too large:
// bisection finds it. This file finds the form; the microkernels are in `linear_x8_x86.h`.

#include "ukernels/linear_x8.h"

#include <stdlib.h>
#include <string.h>

#include "xnnpack/common.h"

enum { LEAST = 0, MOST = UINT8_MAX };

// Results of a table as a rising function of unsigned integers.
struct function {
  const uint8_t* table;
  uint8_t input_mask;
  uint8_t output_mask;
};

static XNN_INLINE int result(const struct function* of, int x) {
  return of->table[x ^ of->input_mask] ^ of->output_mask;
}

// The part of a function whose results are neither the least nor the most, and so are not saturated.
struct line {
  int first;
  int width;
  int height;
};

// Finds the line. Results of a linear function are less than one away from the line through two of them.
static bool find_line(const struct function* of, struct line* line) {
  int first = LEAST;
  int last = MOST;
  while (first < last && result(of, first) == LEAST) {
    first++;
  }
  while (last > first && result(of, last) == MOST) {
    last--;
  }
  const int begin = result(of, first);
  *line = (struct line) {.first = first, .width = last - first, .height = result(of, last) - begin};
  if (line->height <= 0) {
    return false;
  }
  for (int x = 0; x <= line->width; x++) {
    if (abs((result(of, first + x) - begin) * line->width - x * line->height) >= line->width) {
      return false;
    }
  }
  return true;
}

// Constants of the form with a factor, and the places of the results that bound them.
struct constants {
  int64_t least;
  int64_t most;
  int at_least;
  int at_most;
};

// `fraction` is the bits of the constants behind the point.
static struct constants constants_with(const struct function* of, int factor, int fraction) {
  struct constants constants = {.least = INT64_MIN, .most = INT64_MAX};
  const int64_t one = INT64_C(1) << fraction;
  for (int x = LEAST; x <= MOST; x++) {
    const int y = result(of, x);
    const int64_t least = y * one - INT64_C(256) * x * factor;
    const int64_t most = least + one - 1;
    if (y > LEAST && least > constants.least) {
      constants.least = least;
      constants.at_least = x;
    }
    if (y < MOST && most < constants.most) {
      constants.most = most;
      constants.at_most = x;
    }
  }
  return constants;
}

// Makes a constant of a multiple of the factor and one of 2^16.
static bool find_start(struct constants constants, struct linear_form* form) {
  for (int start = 0; start <= UINT8_MAX; start++) {
    const int64_t multiple = (int64_t) start * form->factor;
    const int64_t units = (constants.least - multiple + UINT16_MAX) >> 16;
    if ((units << 16) + multiple <= constants.most && llabs(units) <= UINT16_MAX) {
      form->start = (uint8_t) start;
      form->more = (uint16_t) (units > 0 ? units : 0);
      form->less = (uint16_t) (units < 0 ? -units : 0);
      return true;
    }
  }
  return false;
}

static bool find_form(const struct function* of, struct linear_form* form) {
  struct line line;
  if (!find_line(of, &line)) {
    return false;
  }
  // The most bits with which the factor has 16 bits. Results have a bit more than a byte, because they are packed as signed words.
  int fraction = 24;
  while ((line.height + 1) << (fraction - 8) > UINT16_MAX * line.width) {
    fraction--;
  }
  if (fraction <= 16) {
    return false;
  }
  form->unit = (uint16_t) (1 << (32 - fraction));
  form->input_mask = of->input_mask;
  form->output_mask = of->output_mask;
  int least = ((line.height - 1) << (fraction - 8)) / line.width;
  int most = ((line.height + 1) << (fraction - 8)) / line.width;
  while (least <= most) {
    const int factor = (least + most) / 2;
    const struct constants constants = constants_with(of, factor, fraction);
    if (constants.least <= constants.most) {
      form->factor = (uint16_t) factor;
      return find_start(constants, form);
    }
    if (constants.at_least > constants.at_most) {
      least = factor + 1;
    } else {
      most = factor - 1;
    }
  }
  return false;
}

bool xnnpack_sys_find_linear_form(uint8_t* table) {
  static const uint8_t inputs[] = {0x00, 0x80, 0xFF, 0x7F};
  static const uint8_t outputs[] = {0x00, 0x80};
  for (size_t i = 0; i < sizeof(inputs); i++) {
    for (size_t o = 0; o < sizeof(outputs); o++) {
      const struct function function = {.table = table, .input_mask = inputs[i], .output_mask = outputs[o]};
      struct linear_form form;
      if (find_form(&function, &form)) {
        memcpy(table + XNNPACK_SYS_TABLE_RESULTS, &form, sizeof(form));
        return true;
      }
    }
  }
  return false;
}
