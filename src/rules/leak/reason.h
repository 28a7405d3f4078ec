// Why a line's memory stays, and what to do about it: as the program's objects were seen to hold it, else as the survivors of its rounds tell.
#pragma once

#include <string>

#include "facts/facts.h"
#include "rules/leak/held_by.h"

namespace faultline {

// What the survivors say about who holds them.
struct Reason {
  std::string text;
  std::string advice;
  // results that are collected one by one: a buffer that is not full yet grows like a leak
  bool may_be_filling = false;
};

// A growth among what else is known of its program.
struct Growing {
  const Facts& facts;
  const Growth& growth;
  bool has_framework = false;
  bool is_only = false;  // nothing else grows on its device
  bool trains = false;   // it computes gradients, and cannot do without
};

bool computes_gradients(const Facts& facts);

// As it was seen in the program itself.
Reason reason_for(const Holding& holding);
Reason reason_for(const Growing& growing);

}  // namespace faultline
