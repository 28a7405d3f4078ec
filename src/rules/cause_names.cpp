#include "rules/cause.h"

namespace faultline {

const char* CauseVerdict::cause() const {
  switch (story) {
    case Story::kAbsurd:
    case Story::kTooLarge:
    case Story::kLentMemory:
    case Story::kWholeNeed:
    case Story::kPoolTooLarge:
    case Story::kPoolFull:
    case Story::kFull: return "exhausted";
    case Story::kIdleCache:
    case Story::kGraphPool: return "idle-cache";
    case Story::kPieces:
    case Story::kPoolSlack:
    case Story::kPoolPieces:
    case Story::kPoolRegions:
    case Story::kPiecesUnderLimit: return "fragmented";
    case Story::kLimit:
    case Story::kDriverLimit: return "own-limit";
    case Story::kOthers:
    case Story::kBeforeStart:
    case Story::kUnseen: return "other-process";
    case Story::kOutside:
    case Story::kPoolRefused:
    case Story::kUnexplained: return "outside-framework";
    case Story::kContradiction:
    case Story::kLentRoom:
    case Story::kLimitAndFull:
    case Story::kRounding:
    case Story::kJustAbove:
    case Story::kAsGoodAsFull:
    case Story::kRoomLeft:
    case Story::kFreeUnknown:
    case Story::kPoolAsGoodAsFull:
    case Story::kPoolRoom:
    case Story::kPoolSizeUnknown:
    case Story::kPoolOpen:
    case Story::kOpen: break;
  }
  return "";
}

}  // namespace faultline
