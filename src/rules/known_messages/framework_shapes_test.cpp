// Shapes that JAX, TensorFlow, Keras and NumPy refused: the operands, the line, and that memory is not the problem. And texts that only speak of such.
#include <gtest/gtest.h>

#include <string>

#include "rules/told_texts.h"

namespace faultline {
namespace {

TEST(FrameworkShapes, AreToldWithOperandsAndLine) {
  struct Row {
    const char *exception, *operands, *remedy;
  };
  for (const Row& row :
       {Row{"TypeError: dot_general requires contracting dimensions to have the same shape, got (512,) and (256,).",
            "A product got (512,) and (256,)", "transpose"},
        Row{"TypeError: add got incompatible shapes for broadcasting: (3,), (4,).",
            "The operation add got (3,) and (4,)", "keepdims"},
        Row{"ValueError: Incompatible shapes for broadcasting: shapes=[(2, 3), (4,)]", "got (2, 3) and (4,)",
            "keepdims"},
        Row{"ValueError: Incompatible shapes for broadcasting: (3,) and requested shape (4,)", "got (3,) and (4,)",
            "None"},
        Row{"TypeError: Cannot concatenate arrays with shapes that differ in dimensions other than the one being "
            "concatenated: concatenating along dimension 0 for shapes (2, 3), (2, 4).",
            "A concatenation got (2, 3) and (2, 4)", "axis"},
        Row{"ValueError: Dimensions must be equal, but are 512 and 256 for '{{node MatMul}} = MatMul[T=DT_FLOAT, "
            "transpose_a=false](x, y)' with input shapes: [32,512], [256,10].",
            "The operation MatMul got [32,512] and [256,10]", "features"},
        Row{"ValueError: Shapes (None, 10) and (None, 7) are incompatible", "got (None, 10) and (None, 7)", "classes"},
        Row{"tensorflow.python.framework.errors_impl.InvalidArgumentError: {{function_node __wrapped__AddV2}} "
            "Incompatible "
            "shapes: [3] vs. [4] [Op:AddV2]",
            "The operation AddV2 got [3] and [4]", "expand_dims"},
        Row{"tensorflow.python.framework.errors_impl.InvalidArgumentError: Matrix size-incompatible: In[0]: [32,512], "
            "In[1]: [256,10] [Op:MatMul]",
            "The operation MatMul got [32,512] and [256,10]", "features"},
        Row{"ValueError: operands could not be broadcast together with shapes (3,) (4,) ", "got (3,) and (4,)", "None"},
        Row{"TypeError: cannot reshape array of shape (6,) (size 6) into shape (4, 2) (size 8)",
            "A reshape got (6,) and (4, 2)", "-1"},
        Row{"ValueError: Input 0 of layer \"dense\" is incompatible with the layer: expected axis -1 of input shape to "
            "have "
            "value 512, but received input with shape (None, 256)",
            "built for 512 entries in the last dimension and got an input of shape (None, 256)", "model.summary()"},
        Row{"ValueError: Input 0 of layer dense is incompatible with the layer: expected axis -1 of input shape to "
            "have "
            "value 512 but received input with shape [None, 256]",
            "[None, 256]", "model.summary()"},
        Row{"ValueError: Input 0 is incompatible with layer model: expected shape=(None, 10), found shape=(None, 7)",
            "The layer model", "model.summary()"}}) {
    const Finding finding = told_of(
        std::string("Traceback (most recent call last):\n  File \"/w/fit.py\", line 7, in step\n    y = x @ w\n  "
                    "File \"/usr/lib/python3/site-packages/jax/_src/numpy/lax.py\", line 99, in dot\n    g()\n") +
        row.exception + "\n");
    const std::string words = words_of(finding);
    EXPECT_EQ(finding.rule, "tensor/shape-mismatch") << row.exception << words;
    EXPECT_EQ(finding.location.file, "/w/fit.py") << row.exception;
    EXPECT_EQ(finding.location.line, 7U) << row.exception;
    EXPECT_NE(finding.message.find(row.operands), std::string::npos) << finding.message;
    EXPECT_NE(finding.message.find("Memory is not the problem."), std::string::npos) << finding.message;
    EXPECT_NE(words.find(row.remedy), std::string::npos) << words;
    EXPECT_EQ(words.find("nn.Linear"), std::string::npos) << words;
  }
}

TEST(FrameworkShapes, TalkOfThemIsNoError) {
  for (const char* text :
       {"INFO The plugin (v2) and the driver (v3) are incompatible, using v2\n",
        "note: incompatible shapes for broadcasting are padded here\n", "we cannot concatenate arrays with holes\n",
        "step 3: operands could not be broadcast together with ones, retried\n", "cannot reshape array of strings\n"})
    EXPECT_FALSE(read_error_text(text, "log.txt")) << text;
}

// An error of memory that ended the program is told before shapes that were caught.
TEST(FrameworkShapes, DoNotHideWhatEndedTheProgram) {
  const Finding finding = told_of(
      "Traceback (most recent call last):\n  File \"/w/fit.py\", line 7, in step\n    y = x @ w\nTypeError: add got "
      "incompatible shapes for broadcasting: (3,), (4,).\nfalling back\nstep 1 loss 0.5\nstep 2 loss 0.4\nTraceback "
      "(most "
      "recent call last):\n  File \"/w/fit.py\", line 9, in step\n    z()\njaxlib.xla_extension.XlaRuntimeError: "
      "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.\n");
  EXPECT_EQ(finding.rule, "memory/out-of-memory") << finding.message;
}

}  // namespace
}  // namespace faultline
