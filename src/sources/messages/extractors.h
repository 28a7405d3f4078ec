// What a row of the table of messages asks of a text beyond its words, and what it reads from it beyond its form: named in the rows, each for a few of them.
#pragma once

#include "sources/error_text/message.h"

namespace faultline {

bool is_killed_line(const ErrorPassage& passage);
bool is_for_an_array(const ErrorPassage& passage);
bool is_bad_alloc_of_host(const ErrorPassage& passage);
bool is_memory_error_of_host(const ErrorPassage& passage);
bool is_state_of_container(const ErrorPassage& passage);
bool ends_its_line(const ErrorPassage& passage);
bool is_code_two(const ErrorPassage& passage);  // CUDA's number for out of memory, not the beginning of another
bool is_without_numbers(const ErrorPassage& passage);
bool names_cudnn(const ErrorPassage& passage);
bool tells_of_worker_end(const ErrorPassage& passage);
bool has_xid_number(const ErrorPassage& passage);
bool is_of_input(const ErrorPassage& passage);
bool is_of_input_of_layer(const ErrorPassage& passage);

void read_xid(const ErrorPassage& passage, ErrorMessage& message);
void read_whole_list(const ErrorPassage& passage, ErrorMessage& message);
void read_worker_end(const ErrorPassage& passage, ErrorMessage& message);
void read_length(const ErrorPassage& passage, ErrorMessage& message);
void read_length_and_cache(const ErrorPassage& passage, ErrorMessage& message);
void read_serving_start(const ErrorPassage& passage, ErrorMessage& message);
void read_shared_data(const ErrorPassage& passage, ErrorMessage& message);
void read_rematerialization(const ErrorPassage& passage, ErrorMessage& message);
void read_first_size(const ErrorPassage& passage, ErrorMessage& message);

}  // namespace faultline
